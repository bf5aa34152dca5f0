package outcome

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

const (
	// maxWords, in bytes, and maxWordLines limit quotes from a program's output.
	maxWords     = 2048
	maxWordLines = 12
	// maxFiles limits how many files of each kind are listed.
	maxFiles = 4
	// maxOthers limits how many further failures are described rather than just named.
	maxOthers = 4
	// maxRestartError limits the error in a line about a group restart, in bytes.
	maxRestartError = 240
	// clockError is the largest expected difference between two hosts' clocks.
	clockError = time.Second
)

// Options configure a report for its reader.
type Options struct {
	// Run is the run's ID. If it is set, output is identified by the command that shows it;
	// otherwise, by its path.
	Run string
	// Zone is the time zone of formatted times; nil means UTC.
	Zone *time.Location
}

// Lines returns details about how a run ended, to be shown after [Sentence]. They include the root
// cause with the program's last output, how the remaining tasks exited, the stacks, and where the
// output is. They should explain a failure without the need to read logs.
func Lines(r *spec.RunResult, o Options) []string {
	w := &writer{r: r, o: o, tasks: make(map[string]*spec.TaskResult, len(r.Tasks))}
	for i := range r.Tasks {
		w.tasks[r.Tasks[i].Name] = &r.Tasks[i]
	}
	switch {
	case r.EndedBy == spec.EndedByPlacement && r.Verdict == spec.VerdictFailed:
		w.placedBefore()
	case r.Verdict == spec.VerdictTimedOut && stragglersFail(r):
		w.stopReason()
		w.printed()
		w.doing(r.Stragglers)
	case r.Limit != nil:
		w.outOfTime()
	case r.Verdict == spec.VerdictFailed:
		w.failed()
	case r.Verdict == spec.VerdictCancelled, r.Verdict == spec.VerdictPreempted:
		stopped, _ := w.stopped()
		w.names(stopped, "was stopped", "were stopped", "")
		w.printed()
		w.lost()
		w.stoppedTogether()
	case r.Verdict == spec.VerdictSucceeded:
		w.cut()
		w.stoppedTogether()
	}
	w.traces()
	w.outOfMemory()
	w.unkillable()
	if r.Verdict != spec.VerdictSucceeded {
		w.groupRestarts()
	}
	for _, s := range r.SharedMemory {
		w.line("/dev/shm on %s: %d of %d MiB are in %s left by earlier processes of the run (see clean_shm)",
			s.Host, s.Left>>20, s.Size>>20, units.Count(s.Files, "file", "files"))
	}
	for _, problem := range r.NotReleased {
		w.line("Not released: %s", problem)
	}
	if r.NoticeFailed != "" {
		w.line("The notification was not sent: %s", r.NoticeFailed)
	}
	w.leftOut()
	return w.lines
}

// writer collects lines.
type writer struct {
	r     *spec.RunResult
	o     Options
	tasks map[string]*spec.TaskResult
	lines []string
}

func (w *writer) line(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *writer) path(what, path string) {
	if path != "" {
		w.line("%s: %s", what, path)
	}
}

func (w *writer) failed() {
	r := w.r
	if r.OperatorError != nil {
		words := r.OperatorError.String() + "\n" + r.OperatorError.Traceback
		w.quote(words, true)
		w.reason()
	} else if r.FirstFailure != nil {
		w.rootCause(*r.FirstFailure)
	}
	w.atTheSameStep()
	w.gaveUp()
	w.others()
	if stragglersFail(r) {
		w.line("%s", stragglers(r))
		w.doing(r.Stragglers)
	}
	if f := r.FirstFailure; f != nil && r.OperatorError == nil {
		if f.Evidence != spec.EvidenceRequest && (r.FirstReport == nil || r.FirstReport.Evidence != spec.EvidenceRequest) {
			w.stopReason()
		}
		w.logs(*f)
	}
}

func (w *writer) rootCause(f spec.Failure) {
	who, after := w.who(f), afterRestarts(f)+w.at(f)
	switch {
	case f.Evidence == spec.EvidenceRequest:
		how := ""
		if t := w.tasks[f.Task]; t != nil && t.Exit != nil {
			switch {
			case t.Exit.OK(), t.Exit.Cause.ByItself():
				how = ", and " + HowEnded(spec.Failure{Exit: *t.Exit})
			default:
				how = ", and was stopped"
			}
		}
		w.line("Root cause: %s asked all tasks to stop%s%s", who, how, after)
	case f.Evidence == spec.EvidenceStacks:
		w.line("Root cause: %s blocked the others%s", who, after)
	case silent(w.r):
		w.line("Root cause: cannot tell%s", after)
	case onItsWay(f), f.Reported, f.StoppedByHost():
		w.line("Root cause: %s %s%s", who, HowEnded(f), after)
	case w.leftEarly(f) != nil:
		t := w.leftEarly(f)
		w.line("Root cause: likely %s (rank %d), which %s %s lost its peer%s", place(t.Name, t.Host), t.Rank, done(f, *t), who, after)
	default:
		w.line("Root cause: %s%s", who, after)
	}
	w.quote(f.Message, f.Reported || f.BadResult())
	if f.Evidence == spec.EvidenceRequest {
		w.reason()
	}
	w.firstError(f)
	if f.GPUError != "" {
		w.line("The GPU driver reported %s", f.GPUError)
	}
	if r := w.r.FirstReport; r != nil {
		asked := ""
		if r.Evidence == spec.EvidenceRequest {
			asked = ", which asked all tasks to stop"
		}
		w.line("The first program to report an error was %s%s: %s", place(r.Task, r.Host), asked, firstLine(r.Message))
		w.quote(r.Message, true)
	}
	if silent(w.r) {
		w.printed()
		w.doing(nil)
	}
}

// firstError writes the first printed error, if the process that exited first does not explain the
// failure.
func (w *writer) firstError(f spec.Failure) {
	effect := w.tasks[w.r.FirstEnded]
	switch first := w.r.FirstError; {
	case w.r.FirstEnded != "" && effect != nil && effect.Exit != nil && showedLater(f, effect):
		text := fmt.Sprintf("%s (rank %d) ended ", place(effect.Name, effect.Host), effect.Rank)
		if d := f.Failed().Sub(effect.Exit.Ended); effect.Host == f.Host && d > 0 {
			text += span(d) + " before, "
		}
		text += "because it had lost its peer"
		if p := effect.Exit.Printed; p != nil {
			text += fmt.Sprintf(" (%s)", p)
		}
		w.line("%s", text)
	case w.r.FirstEnded != "" && effect != nil && effect.Exit != nil:
		text := fmt.Sprintf("First error: %s%s %s ended", rank(f), before(f, spec.Failure{Host: effect.Host, Exit: *effect.Exit}), effect.Name)
		if !onItsWay(f) { // otherwise the sentence contains it
			text += ": " + f.Printed.String()
		}
		w.line("%s", text)
	case first != nil:
		w.line("First error: %s%s %s ended: %s", rank(*first), before(*first, f), f.Task, first.Printed)
	case w.leftEarly(f) != nil: // that task was already named
	case f.LostPeer() && len(w.r.Tasks) > 1:
		how := "It wrote to a peer that was gone"
		if f.Printed != nil {
			how = fmt.Sprintf("Its error reports a lost peer (%s)", f.Printed)
		}
		w.line("%s, and no other task had printed its own error", how)
		w.doneBefore(f)
		w.livedOn()
	}
}

// livedOn names the tasks that were not waiting for other tasks when a peer was lost, and where
// they were.
func (w *writer) livedOn() {
	for _, name := range w.r.LivedOn[:min(len(w.r.LivedOn), maxOthers)] {
		t := w.tasks[name]
		if t == nil {
			continue
		}
		does := ""
		if w.r.Stacks != nil {
			does = w.r.Stacks.DoesOf(t.Rank)
		}
		w.line("%s (rank %d) kept running without waiting for others%s, and was stopped after error_grace", place(name, t.Host), t.Rank, does)
		w.path("Stacks of "+name, t.StacksFile)
	}
}

// leftEarly returns the task that finished before f's process lost its peer, or nil if another task
// can be the reason.
func (w *writer) leftEarly(f spec.Failure) *spec.TaskResult {
	if len(w.r.DoneBefore) != 1 || len(w.r.LivedOn) > 0 || f.Reported {
		return nil
	}
	t := &w.r.DoneBefore[0]
	doubt := time.Duration(0)
	if t.Host != f.Host {
		doubt = clockError
	}
	if t.Exit.Ended.IsZero() || f.Ended.Sub(t.Exit.Ended) <= doubt {
		return nil
	}
	return t
}

// doneBefore names the finished tasks that a process may have lost as peers.
func (w *writer) doneBefore(f spec.Failure) {
	for _, t := range w.r.DoneBefore {
		w.line("%s (rank %d) %s: the others may still have needed it", place(t.Name, t.Host), t.Rank, done(f, t))
	}
}

// done returns, as a predicate, when a task finished that f's process may have lost as its peer.
func done(f spec.Failure, t spec.TaskResult) string {
	done := "ended with exit code 0"
	if s := t.Exit.LastStep; s != nil {
		done += " after step " + step(*s)
	}
	d := f.Ended.Sub(t.Exit.Ended)
	switch {
	case d > 0 && (t.Host == f.Host || d > clockError):
		done += ", " + span(d) + " before"
	case t.Host == f.Host:
		done += ", " + span(-d) + " later"
	}
	return done
}

// showedLater reports whether f's process did not show a failure before effect's process, which had
// lost it as a peer, exited.
func showedLater(f spec.Failure, effect *spec.TaskResult) bool {
	return f.Printed == nil || f.Host == effect.Host && f.Printed.By.After(effect.Exit.Ended)
}

// stoppedTogether writes how the tasks stopped together in a run without failures.
func (w *writer) stoppedTogether() {
	w.stopReason()
	if len(w.r.Stragglers) > 0 {
		w.line("%s", stragglers(w.r))
	}
}

// stopReason writes who requested the stop, and why.
func (w *writer) stopReason() {
	if s := w.r.Stopping; s != nil && s.Stop {
		text := strings.TrimSuffix(shorten.Text(s.String(), maxWords/2), ".")
		if s.By == "" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		w.line("%s", text)
	}
}

func (w *writer) reason() {
	if s := w.r.Stopping; s != nil && s.Reason != "" {
		w.line("Reason: %s", firstLine(s.Reason))
	}
}

// placedBefore writes why the group was placed more than once.
func (w *writer) placedBefore() {
	if w.r.Generation == 0 {
		return
	}
	text := fmt.Sprintf("This would have been restart %d of all tasks", w.r.Generation)
	if n := len(w.r.GroupRestarts); n > 0 && w.r.GroupRestarts[n-1].Failure != nil {
		f := *w.r.GroupRestarts[n-1].Failure
		w.line("%s: before, %s%s", text, ofRestart(f), w.at(f))
		w.logs(f)
		return
	}
	w.line("%s", text)
}

// groupRestarts lists the group restarts before the reported generation, with their reasons.
func (w *writer) groupRestarts() {
	restarts := w.r.GroupRestarts
	if w.r.EndedBy == spec.EndedByPlacement && len(restarts) > 0 {
		restarts = restarts[:len(restarts)-1] // the report started with it
	}
	if len(restarts) == 0 {
		return
	}
	if n := w.r.Generation; n > len(w.r.GroupRestarts) {
		w.line("The last of %d restarts of all tasks:", n)
	} else {
		w.line("Restarts of all tasks:")
	}
	for _, r := range restarts {
		w.line("    %s", Restart(r))
	}
}

// Restart returns why the group restarted, in one line.
func Restart(r spec.GroupRestart) string {
	why := "an operator asked"
	switch {
	case r.Requeued == spec.RequeueOnPreemption:
		return fmt.Sprintf("preempted: %s; pending again, then attempt_%d", r.Reason, r.Attempt)
	case r.Requeued != "" && r.Failure == nil:
		return fmt.Sprintf("out of time; pending again, then attempt_%d", r.Attempt)
	case r.Requeued != "":
		return fmt.Sprintf("%s; pending again, then attempt_%d", ofRestart(*r.Failure), r.Attempt)
	case r.Failure != nil:
		why = ofRestart(*r.Failure)
	}
	return fmt.Sprintf("%s; all tasks restarted (attempt_%d)", why, r.Attempt)
}

func ofRestart(f spec.Failure) string {
	text := fmt.Sprintf("%s (rank %d) %s", place(f.Task, f.Host), f.Rank, HowEnded(f))
	switch {
	case f.Cause == spec.CauseHostLost:
	case f.Reported:
		text += ": " + shorten.Text(firstLine(f.Message), maxRestartError)
	case f.Printed != nil:
		text += ": " + f.Printed.String()
	}
	return text
}

func (w *writer) leftOut() {
	o := w.r.LeftOut
	if o == nil {
		return
	}
	if len(o.Invalid) > 0 {
		w.line("Returned values omitted because they are not JSON: %s", list(o.Invalid))
	}
	if len(o.Values) > 0 {
		w.line("Returned values omitted because they are too large in total: %s. Each is in result.json in its process's log directory.", list(o.Values))
	}
	if o.Tasks > 0 {
		w.line("The run has too many tasks for its result: %s omitted", units.Count(o.Tasks, "was", "were"))
	}
}
