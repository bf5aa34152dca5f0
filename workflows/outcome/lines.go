package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxWords, in bytes, and maxWordLines bound what is quoted of a program's own words.
	maxWords     = 2048
	maxWordLines = 12
	// maxFiles bounds the files of each kind that are named.
	maxFiles = 4
	// maxOthers bounds the further failures that get more than a name.
	maxOthers = 4
	// maxRestartError bounds the error in a line about a restart of the group, in bytes.
	maxRestartError = 240
	// clockError is the largest expected difference between the clocks of two hosts.
	clockError = time.Second
)

// Options say for whom a report is.
type Options struct {
	// Run is the ID of the run. If it is set, output is named by the command that shows it, and
	// else by its path.
	Run string
	// Zone is the time zone of times in the text; nil means UTC.
	Zone *time.Location
}

// Lines returns the details of the end of a run after [Sentence]: the root cause with the
// program's last words, the ends of the other tasks, their stacks, and the place of the output.
// They should explain a failed run without a look at its logs.
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
		w.doing(r.Stragglers)
	case r.Limit != nil:
		w.outOfTime()
	case r.Verdict == spec.VerdictFailed:
		w.failed()
	case r.Verdict == spec.VerdictCancelled:
		w.names(w.stopped(), "was stopped", "were stopped", "")
		w.lost()
		w.stoppedTogether()
	case r.Verdict == spec.VerdictSucceeded:
		w.stoppedTogether()
	}
	w.traces()
	w.unkillable()
	if r.Verdict != spec.VerdictSucceeded {
		w.groupRestarts()
	}
	for _, problem := range r.NotReleased {
		w.line("Not released: %s", problem)
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

// names writes which tasks something became of.
func (w *writer) names(names []string, one, many, why string) {
	if len(names) > 0 {
		w.line("%s%s: %s", plural.Of(len(names), one, many), why, list(names))
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
				how = ", and had to be stopped"
			}
		}
		w.line("Root cause: %s asked all tasks to stop%s%s", who, how, after)
	case f.Evidence == spec.EvidenceStacks:
		w.line("Root cause: %s held the others up%s", who, after)
	case silent(w.r):
		w.line("Root cause: cannot tell%s", after)
	case onItsWay(f), f.Reported, f.StoppedByHost():
		w.line("Root cause: %s %s%s", who, HowEnded(f), after)
	default:
		w.line("Root cause: %s%s", who, after)
	}
	w.quote(f.Message, f.Reported || f.BadResult())
	if f.Evidence == spec.EvidenceRequest {
		w.reason()
	}
	w.firstError(f)
	if r := w.r.FirstReport; r != nil {
		asked := ""
		if r.Evidence == spec.EvidenceRequest {
			asked = ", which asked all tasks to stop"
		}
		w.line("The first program to report an error was %s%s: %s", place(r.Task, r.Host), asked, firstLine(r.Message))
		w.quote(r.Message, true)
	}
	if silent(w.r) {
		w.doing(nil)
	}
}

// firstError writes the error that a process printed first, if the process that ended first does
// not say what went wrong.
func (w *writer) firstError(f spec.Failure) {
	effect := w.tasks[w.r.FirstEnded]
	switch first := w.r.FirstError; {
	case w.r.FirstEnded != "" && effect != nil && effect.Exit != nil:
		text := fmt.Sprintf("First error: %s%s %s ended", rank(f), before(f, spec.Failure{Host: effect.Host, Exit: *effect.Exit}), effect.Name)
		if !onItsWay(f) { // otherwise the sentence has it
			text += ": " + f.Printed.String()
		}
		w.line("%s", text)
	case first != nil:
		w.line("First error: %s%s %s ended: %s", rank(*first), before(*first, f), f.Task, first.Printed)
	case f.Printed != nil && f.Printed.LostPeer && len(w.r.Tasks) > 1:
		w.line("Its error speaks of a lost peer (%s), and no other task had printed an error of its own", f.Printed)
	}
}

// before returns how long before the end of g the error of f was printed, as part of a
// sentence.
func before(f, g spec.Failure) string {
	if f.Printed == nil || f.Printed.By.IsZero() || g.Ended.IsZero() {
		return ", before"
	}
	d := g.Ended.Sub(f.Printed.By)
	switch {
	case f.Host == g.Host && d > 0:
		return ", " + span(d) + " before"
	case f.Host == g.Host:
		return ", before"
	case d.Abs() < clockError:
		return ", by the clocks of their hosts at about the time that"
	case d < 0:
		return ", before (though not by the clocks of their hosts)"
	}
	return ", by the clocks of their hosts " + span(d) + " before"
}

// others writes the ends of the other tasks, with counts and names.
func (w *writer) others() {
	w.othersFailed()
	why := " because of it"
	switch w.r.EndedBy {
	case spec.EndedByChief:
		why = " after the chief's end"
	case spec.EndedByTimeout:
		why = " when the timeout passed"
	case spec.EndedByMaxRunTime:
		why = " when max_run_time passed"
	case spec.EndedByCancel:
		why = " when the run was cancelled"
		if w.r.Reason != "" {
			why += " (" + firstLine(w.r.Reason) + ")"
		}
	case spec.EndedByTogether:
		why = " while the tasks were stopping together"
		if len(w.r.Stragglers) > 0 {
			why = " when their time to stop was over"
		}
	}
	if stopped := w.stopped(); !stragglersFail(w.r) { // those that were stopped are named as stragglers
		if len(stopped) == 0 && w.r.EndedBy == spec.EndedByCancel {
			w.line("Then the run was cancelled%s", strings.TrimPrefix(why, " when the run was cancelled"))
		}
		w.names(stopped, "was stopped", "were stopped", why)
	}
	w.lost()
}

// othersFailed lists the failures after the root cause, the earliest first.
func (w *writer) othersFailed() {
	var root spec.Failure
	if f := w.r.FirstFailure; f != nil && w.r.OperatorError == nil {
		root = *f
	}
	var others []*spec.TaskResult
	later := true
	for i := range w.r.Tasks {
		t := &w.r.Tasks[i]
		if t.Failed && t.Name != root.Task && t.Exit != nil && (root.Task == "" || !silent(w.r) || t.Exit.Cause != spec.CauseSilence) {
			others = append(others, t)
			later = later && !t.WasRestarting
		}
	}
	if len(others) == 0 {
		return
	}
	slices.SortStableFunc(others, func(a, b *spec.TaskResult) int { return a.Exit.Failed().Compare(b.Exit.Failed()) })
	after := ""
	switch {
	case w.r.OperatorError != nil:
		after = " after that"
	case later:
		after = " after it"
	}
	var told []string
	for i, t := range others {
		how := Short(*t.Exit)
		if i < maxOthers {
			if onItsWay(spec.Failure{Exit: *t.Exit}) {
				how = "reported an error and was stopped: " + how
			}
			if a, b := root.FailedNanos(), t.Exit.FailedNanos(); t.Host == root.Host && t.Host != "" && a > 0 && b-a >= int64(time.Millisecond) {
				how += ", " + span(time.Duration(b-a)) + " later"
			}
			if t.WasRestarting {
				how += ", and was to be restarted"
			}
			told = append(told, fmt.Sprintf("%s (%s)", place(t.Name, t.Host), how))
			continue
		}
		told = append(told, fmt.Sprintf("%s (%s)", t.Name, how))
	}
	w.line("%s%s: %s", plural.Of(len(others), "other failed", "others failed"), after, list(told))
}

// outOfTime writes which tasks were not done when a limit passed.
func (w *writer) outOfTime() {
	var late []*spec.TaskResult
	failures := 0
	for i := range w.r.Tasks {
		t := &w.r.Tasks[i]
		if t.Failed {
			failures++
		} else if t.Exit == nil || !t.Exit.OK() && t.Exit.Cause != spec.CauseOperator {
			late = append(late, t)
		}
	}
	switch {
	case w.r.NotStarted && w.r.Generation > 0:
		w.line("It passed while the group was being started again")
	case w.r.NotStarted:
		w.line("The limit is 0, so nothing was started")
	case len(late) > 0:
		names, places, host := []string{}, []string{}, late[0].Host
		for _, t := range late {
			names, places = append(names, t.Name), append(places, place(t.Name, t.Host))
			if t.Host != host {
				host = ""
			}
		}
		if host != "" {
			places = slices.Clone(names)
			places[len(places)-1] += " on " + host
			if len(names) > 50 {
				places = append(names[:49:49], fmt.Sprintf("and %d more on %s", len(names)-49, host))
			}
		}
		w.line("Still running then: %s", list(places))
		w.doing(names)
	}
	f := w.r.FirstFailure
	if f == nil {
		return
	}
	w.line("Before that, %s %s%s", place(f.Task, f.Host), HowEnded(*f), w.at(*f))
	w.quote(f.Message, false)
	if failures > 1 {
		w.line("%s after it", plural.Of(failures-1, "other failed", "others failed"))
	}
	w.logs(*f)
}

// doing writes what tasks were doing that were not done, and names the files with their stacks
// and logs. If it is known which tasks held the others up, or differ, only theirs are named.
func (w *writer) doing(late []string) {
	if w.r.Stacks != nil {
		w.lines = append(w.lines, strings.Split(w.r.Stacks.String(), "\n")...)
		late = w.telling()
	}
	n := 0
	for _, name := range late {
		t := w.tasks[name]
		if t == nil || n == maxFiles {
			continue
		}
		switch {
		case t.StacksFile != "": // next to the logs
			w.path("Stacks of "+name, t.StacksFile)
			n++
		case w.r.Stacks == nil && t.Exit != nil && t.Exit.LogDir != "" && w.o.Run == "":
			w.path("Logs of "+name, t.Exit.LogDir)
			n++
		}
	}
}

// telling returns the tasks whose files of stacks are worth reading: those that differ, or else one
// of each class.
func (w *writer) telling() []string {
	named := func(ranks stacktree.Ranks) (names []string) {
		for _, t := range w.r.Tasks {
			if ranks.Has(t.Rank) && t.StacksFile != "" {
				names = append(names, t.Name)
			}
		}
		return names
	}
	if names := named(w.r.Stacks.Outliers); len(names) > 0 {
		return names
	}
	var ranks stacktree.Ranks
	for _, c := range w.r.Stacks.Classes {
		ranks = ranks.Union(stacktree.RanksOf(c.Ranks.First(1)...))
	}
	return named(ranks)
}

// stopped returns the tasks that were stopped and had not failed before.
func (w *writer) stopped() []string {
	var names []string
	for _, t := range w.r.Tasks {
		if t.Failed || t.Exit == nil || w.r.FirstFailure != nil && w.r.FirstFailure.Task == t.Name {
			continue
		}
		if c := t.Exit.Cause; c == spec.CauseCollateral || c == spec.CauseTimeout || c == spec.CauseOperator && w.r.EndedBy == spec.EndedByCancel {
			names = append(names, t.Name)
		}
	}
	return names
}

// lost names the tasks that were lost with their hosts while they were being stopped. By
// the rules this is not the root cause, but a reader may know better: a host is given up
// only after minutes, when its peers have long failed because of its silence.
func (w *writer) lost() {
	var names []string
	for _, t := range w.r.Tasks {
		if t.Exit != nil && t.Exit.Cause == spec.CauseHostLost && !t.Failed {
			names = append(names, place(t.Name, t.Host))
		}
	}
	w.names(names, "was lost with the host meanwhile", "were lost with the host meanwhile", "")
}

// unkillable names processes that outlived SIGKILL. They still hold their resources, and
// only the owner of the machine can help.
func (w *writer) unkillable() {
	var names []string
	for _, t := range w.r.Tasks {
		if t.Exit != nil && t.Exit.Unkillable {
			names = append(names, fmt.Sprintf("%s (pid %d)", place(t.Name, t.Host), t.Exit.PID))
		}
	}
	if len(names) > 0 {
		w.line("Still there a while after SIGKILL, and given up: %s", list(names))
	}
}

// traces names what torch's Flight Recorder wrote of the last collectives of tasks, the root
// cause's first.
func (w *writer) traces() {
	var traced []*spec.TaskResult
	for i := range w.r.Tasks {
		if t := &w.r.Tasks[i]; t.Exit != nil && t.Exit.TraceFile != "" {
			traced = append(traced, t)
		}
	}
	if f := w.r.FirstFailure; f != nil {
		slices.SortStableFunc(traced, func(a, b *spec.TaskResult) int {
			return cmp.Compare(btoi(b.Name == f.Task), btoi(a.Name == f.Task))
		})
	}
	for _, t := range traced[:min(len(traced), maxFiles)] {
		w.path("Flight Recorder of "+t.Name, t.Exit.TraceFile)
	}
	if more := len(traced) - maxFiles; more > 0 {
		w.line("and %s more of the Flight Recorder, each beside the logs of its task", plural.Of(more, "file", "files"))
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stoppedTogether writes how the tasks of a run that did not fail stopped together.
func (w *writer) stoppedTogether() {
	w.stopReason()
	if len(w.r.Stragglers) > 0 {
		w.line("%s", stragglers(w.r))
	}
}

// stopReason writes who asked for the stop, and why.
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

// placedBefore writes why the group was placed again.
func (w *writer) placedBefore() {
	if w.r.Generation == 0 {
		return
	}
	text := fmt.Sprintf("This was to be restart %d of the group", w.r.Generation)
	if n := len(w.r.GroupRestarts); n > 0 && w.r.GroupRestarts[n-1].Failure != nil {
		f := *w.r.GroupRestarts[n-1].Failure
		w.line("%s: before, %s%s", text, ofRestart(f), w.at(f))
		w.logs(f)
		return
	}
	w.line("%s", text)
}

// groupRestarts lists why the group was restarted before the generation that is reported.
func (w *writer) groupRestarts() {
	restarts := w.r.GroupRestarts
	if w.r.EndedBy == spec.EndedByPlacement && len(restarts) > 0 {
		restarts = restarts[:len(restarts)-1] // the report has begun with it
	}
	if len(restarts) == 0 {
		return
	}
	if n := w.r.Generation; n > len(w.r.GroupRestarts) {
		w.line("The last of %d restarts of the group:", n)
	} else {
		w.line("Restarts of the group:")
	}
	for _, r := range restarts {
		w.line("    %s", Restart(r))
	}
}

// Restart returns in one line why the group was started again.
func Restart(r spec.GroupRestart) string {
	why := "an operator asked"
	if r.Failure != nil {
		why = ofRestart(*r.Failure)
	}
	return fmt.Sprintf("%s; the group restarted (attempt_%d)", why, r.Attempt)
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
		w.line("What they returned is not JSON and was left out: %s", list(o.Invalid))
	}
	if len(o.Values) > 0 {
		w.line("The values returned are too large together for the result and were left out: %s. Each is in result.json of the log directory of its process.", list(o.Values))
	}
	if o.Tasks > 0 {
		w.line("The run has too many tasks for its result, and %s left out", plural.Of(o.Tasks, "was", "were"))
	}
}

// logs names the output of a process that failed.
func (w *writer) logs(f spec.Failure) {
	if w.o.Run != "" {
		if f.LogDir != "" {
			w.line("Logs: clusterrun logs %s %s", w.o.Run, f.Task)
		}
		return
	}
	w.path("Error file", f.ErrorFile)
	w.path("Logs", f.LogDir)
}

// quote writes the last lines of a program's words, indented. The first line of a
// reported error is left out: the sentence has it.
func (w *writer) quote(words string, reported bool) {
	words = strings.TrimSpace(words)
	if reported {
		_, words, _ = strings.Cut(words, "\n")
	}
	if words == "" {
		return
	}
	lines := strings.Split(words, "\n")
	first, left := len(lines), maxWords
	for first > 0 && len(lines)-first < maxWordLines && left > 0 {
		first--
		left -= len(lines[first])
	}
	if first > 0 {
		w.line("    …")
	}
	for _, l := range lines[first:] {
		w.line("    %s", shorten.Text(strings.TrimRight(l, " \t\r"), maxWords))
	}
}

// who returns the task, host, rank and pid of a process.
func (w *writer) who(f spec.Failure) string {
	who := fmt.Sprintf("%s (rank %d", place(f.Task, f.Host), f.Rank)
	if f.PID > 0 {
		who += fmt.Sprintf(", pid %d", f.PID)
	}
	return who + ")"
}

// at returns when the process failed, as the end of a sentence.
func (w *writer) at(f spec.Failure) string {
	when := f.Ended
	if _, ok := f.ErrorAge(); ok || f.Evidence == spec.EvidenceRequest {
		when = f.ErrorTime
	}
	if when.IsZero() {
		return ""
	}
	zone := w.o.Zone
	if zone == nil {
		zone = time.UTC
	}
	return ", at " + when.In(zone).Format("2006-01-02 15:04:05.000 MST")
}

// afterRestarts returns how many restarts came before the process that failed, as part
// of a sentence.
func afterRestarts(f spec.Failure) string {
	if f.Restarts == 0 {
		return ""
	}
	text := ", after " + plural.Of(f.Restarts, "restart", "restarts")
	if f.OfGroup {
		text += " of the group"
	}
	if f.UsedUp {
		text += ", all that max_restarts allows"
	}
	return text
}

// place returns the name of a task and its host.
func place(task, host string) string {
	if host != "" {
		return task + " on " + host
	}
	return task
}

// rank returns the name and the rank of a task.
func rank(f spec.Failure) string { return fmt.Sprintf("%s (rank %d)", f.Task, f.Rank) }

// span formats the time between two failures.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
