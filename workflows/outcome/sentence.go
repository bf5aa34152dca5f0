package outcome

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	words "github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Headline describes the end of the run with that ID. It includes the exit code if the sentence
// does not. mark may color the verdict.
func Headline(run string, r *spec.RunResult, mark func(string) string) string {
	what := "run"
	if r.Sweep != nil {
		what = "sweep"
	}
	if r.Verdict == spec.VerdictSucceeded {
		return fmt.Sprintf("%s %s %s%s", what, run, mark("succeeded"), afterAll(r))
	}
	text := fmt.Sprintf("%s %s %s", what, run, mark(strings.ReplaceAll(string(r.Verdict), "-", " ")))
	if f := r.FirstFailure; f == nil || !plainExit(r, f) || shellCode(f.Exit) != r.ExitCode {
		text += fmt.Sprintf(" (exit code %d)", r.ExitCode)
	}
	why := r.Message
	if (r.Verdict == spec.VerdictCancelled || r.Verdict == spec.VerdictPreempted) && r.Sweep == nil {
		why = r.Reason
	}
	if why != "" {
		text += ": " + strings.TrimSpace(why)
	}
	return text
}

// afterAll describes the restarts of a successful run.
func afterAll(r *spec.RunResult) string {
	if r.Sweep != nil {
		return ": " + r.Sweep.Summary()
	}
	if again := r.Generation - r.Preemptions; r.Generation > 0 {
		var all []string
		if again > 0 {
			all = append(all, units.Count(again, "restart", "restarts")+" of the group")
		}
		if r.Preemptions > 0 {
			all = append(all, units.Count(r.Preemptions, "preemption", "preemptions"))
		}
		return ", after " + strings.Join(all, " and ")
	}
	n := 0
	for _, t := range r.Tasks {
		n += t.Restarts
	}
	if n > 0 {
		return ", after " + units.Count(n, "restart", "restarts")
	}
	return ""
}

// Sentence returns why a run did not succeed, or "" if it did.
func Sentence(r *spec.RunResult) string {
	f := r.FirstFailure
	switch {
	case r.Verdict == spec.VerdictSucceeded:
		return ""
	case r.EndedBy == spec.EndedByPlacement, r.EndedBy == spec.EndedByAfter:
		return r.Reason
	case r.Sweep != nil:
		return r.Sweep.Summary()
	case r.Verdict == spec.VerdictPreempted:
		return "The run was preempted: " + strings.TrimSuffix(r.Reason, ".")
	case r.Verdict == spec.VerdictCancelled && r.Reason == "":
		return "The run was cancelled"
	case r.Verdict == spec.VerdictCancelled:
		return "The run was cancelled: " + strings.TrimSuffix(r.Reason, ".")
	case r.Verdict == spec.VerdictTimedOut && stragglersFail(r):
		return stragglers(r)
	case r.Limit != nil && r.EndedBy == spec.EndedByTimeout:
		return fmt.Sprintf("One or more subprocesses timed out, where timeout was set to %ss. Please change the `timeout` of the run spec if it should be adjusted.", seconds(*r.Limit))
	case r.Limit != nil:
		return fmt.Sprintf("One or more subprocesses were killed because the run reached its `max_run_time`, which was set to %ss. Please change the `max_run_time` of the run spec if it should be adjusted.", seconds(*r.Limit))
	case r.OperatorError != nil:
		return "An operator asked all tasks to stop, because of an error: " + firstLine(r.OperatorError.String())
	case f != nil && silent(r):
		all := which(r, func(t *spec.TaskResult) bool { return t.Exit.Cause == spec.CauseSilence })
		return units.Count(len(all), "task was", "tasks were") + " silent, and stopped for that (on_silence): " + list(words.Of(all, func(t *spec.TaskResult) string { return t.Name }))
	case f != nil:
		return ofFailure(*f)
	}
	return "The run " + string(r.Verdict)
}

func ofFailure(f spec.Failure) string {
	switch {
	case f.StoppedByHost():
		return strings.TrimRight(fmt.Sprintf("Subprocess %s was stopped by its host %s", f.Task, f.Host), " ")
	case f.Cause == spec.CauseHostLost && f.Host == "":
		return fmt.Sprintf("Subprocess %s was lost with its host", f.Task)
	case f.Cause == spec.CauseHostLost:
		return fmt.Sprintf("Subprocess %s was lost with its host %s. Its exit code is not known.", f.Task, f.Host)
	case f.Reported:
		return fmt.Sprintf("%s reported an error: %s", f.Task, firstLine(f.Message))
	case f.Evidence == spec.EvidencePrinted && !f.Cause.ByItself():
		return fmt.Sprintf("%s printed an error and was stopped: %s", f.Task, f.Printed)
	case f.BadResult():
		return fmt.Sprintf("Subprocess %s exited with exit code 0, but what it returned cannot be used: %s", f.Task, firstLine(f.Message))
	case f.Cause == spec.CauseOrigin && f.ExitCode >= 0:
		return fmt.Sprintf("Subprocess %s %s", f.Task, HowEnded(f))
	case f.Cause == spec.CauseOrigin:
		return fmt.Sprintf("Subprocess %s exited with exit code %d (%s)", f.Task, shellCode(f.Exit), signalOf(f.Exit))
	}
	return f.Task + " " + HowEnded(f)
}

// plainExit reports whether the run's sentence states f's exit code.
func plainExit(r *spec.RunResult, f *spec.Failure) bool {
	return Sentence(r) == ofFailure(*f) && f.Cause == spec.CauseOrigin && !f.Reported && !f.BadResult()
}

// shellCode converts the exit code to a shell's.
func shellCode(e spec.Exit) int {
	if e.ExitCode < 0 {
		return exitcode.OfSignal(-e.ExitCode)
	}
	return e.ExitCode
}

// stragglers names the stragglers in the wording of TensorFlow's Coordinator.
func stragglers(r *spec.RunResult) string {
	return "Coordinator stopped with tasks still running: " + strings.Join(r.Stragglers, " ")
}

// stragglersFail reports whether there are stragglers that count as a failure.
func stragglersFail(r *spec.RunResult) bool { return len(r.Stragglers) > 0 && !r.IgnoredStragglers }

// silent reports whether the root cause is known only from the stacks of silent tasks.
func silent(r *spec.RunResult) bool {
	f := r.FirstFailure
	return f.Evidence == spec.EvidenceStacks || f.Cause == spec.CauseSilence && r.Stacks != nil
}

// HowEnded describes how a process exited, as a sentence's predicate.
func HowEnded(f spec.Failure) string {
	switch e := f.Exit; {
	case f.Evidence == spec.EvidenceStacks:
		return "blocked the others, and was stopped for it (on_silence)"
	case onItsWay(f):
		return "was stopped while exiting (" + Short(e) + ")"
	case e.StoppedByHost():
		return "was stopped by its host (" + exitText(e) + ")"
	case e.Cause == spec.CauseHostLost:
		return "was lost with its host or host worker"
	case e.Cause == spec.CauseOOM && e.ExitCode == 0:
		return "exited with exit code 0 after one of its processes was killed for lack of memory (on_oom)"
	case e.Cause == spec.CauseOOM:
		return "reached its memory limit and was killed"
	case e.Cause == spec.CauseSilence:
		return "was silent, and was stopped for it (on_silence)"
	case e.Cause == spec.CauseLogQuota:
		return "was stopped because the run's output on that host exceeded logs.quota"
	case e.ExitCode < 0:
		return "was killed by " + signalOf(e)
	case e.BadResult():
		return "exited with exit code 0 but left a bad result"
	}
	return fmt.Sprintf("exited with exit code %d", f.ExitCode)
}

// onItsWay reports whether the program reported or showed its error and was stopped before it
// exited.
func onItsWay(f spec.Failure) bool {
	return (f.Reported && f.Cause != spec.CauseHostLost || f.Evidence == spec.EvidencePrinted) && !f.Cause.ByItself()
}

// signalOf returns the signal that killed a process, by name if possible.
func signalOf(e spec.Exit) string {
	if e.Signal != "" && e.Signal != spec.NoSignal {
		return e.Signal
	}
	if name := spec.SignalName(-e.ExitCode); name != spec.NoSignal {
		return name
	}
	return fmt.Sprintf("signal %d", -e.ExitCode)
}

// Short describes in a few words how a process exited, for narrow columns.
func Short(e spec.Exit) string {
	switch {
	case e.StoppedByHost():
		return "stopped by its host"
	case e.Cause == spec.CauseHostLost:
		return "lost"
	}
	return exitText(e)
}

// exitText describes a process's exit, without its cause.
func exitText(e spec.Exit) string {
	switch {
	case e.ExitCode < 0:
		return signalOf(e)
	case e.BadResult():
		return "bad result"
	default:
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
}

// seconds formats a duration in seconds, without a fraction that is zero.
func seconds(d spec.Duration) string {
	return strconv.FormatFloat(d.Std().Seconds(), 'f', -1, 64)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return shorten.Text(line, maxWords/2)
}

// list joins a list's first names and counts the rest.
func list(names []string) string { return shorten.List(names, 50) }
