package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	words "github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// names writes which tasks had the given fate.
func (w *writer) names(names []string, one, many, why string) {
	if n := len(names); n > 0 {
		if n > maxOthers {
			names = ranges(names)
		}
		w.line("%s%s: %s", units.Count(n, one, many), why, list(names))
	}
}

// others writes how the remaining tasks exited, with counts and names.
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
		why = " during the graceful stop"
		if len(w.r.Stragglers) > 0 {
			why = " after the grace of the stop"
		}
	}
	if stopped, failed := w.stopped(); !stragglersFail(w.r) { // otherwise, the stopped tasks are named as stragglers
		w.names(failed, "failed", "failed", why)
		if len(stopped) == 0 && w.r.EndedBy == spec.EndedByCancel {
			w.line("Then the run was cancelled%s", strings.TrimPrefix(why, " when the run was cancelled"))
		}
		w.names(stopped, "was stopped", "were stopped", why)
	}
	w.lost()
}

// othersFailed lists the failures after the root cause, earliest first.
func (w *writer) othersFailed() {
	var root spec.Failure
	if f := w.r.FirstFailure; f != nil && w.r.OperatorError == nil {
		root = *f
	}
	others := which(w.r, func(t *spec.TaskResult) bool {
		return t.Failed && t.Name != root.Task && (root.Task == "" || !silent(w.r) || t.Exit.Cause != spec.CauseSilence)
	})
	later := !slices.ContainsFunc(others, func(t *spec.TaskResult) bool {
		return t.WasRestarting || t.Name == w.r.FirstEnded && showedLater(root, t) || unordered(root, t)
	})
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
	var told, fates []string
	shared := make(map[string][]string)
	for i, t := range others {
		how := Short(*t.Exit)
		if i < maxOthers {
			if onItsWay(spec.Failure{Exit: *t.Exit}) {
				how = "reported an error, then was stopped: " + how
			}
			if a, b := root.FailedNanos(), t.Exit.FailedNanos(); t.Host == root.Host && t.Host != "" && a > 0 && b-a >= int64(time.Millisecond) {
				how += ", " + span(time.Duration(b-a)) + " later"
			}
			if unordered(root, t) {
				how += ", perhaps first: the hosts' clocks do not show the order"
			}
			if t.WasRestarting {
				how += ", and would have been restarted"
			}
			told = append(told, fmt.Sprintf("%s (%s)", place(t.Name, t.Host), how))
			continue
		}
		if shared[how] == nil {
			fates = append(fates, how)
		}
		shared[how] = append(shared[how], t.Name)
	}
	for _, how := range fates {
		each := ""
		if len(shared[how]) > 1 {
			each = "each "
		}
		told = append(told, fmt.Sprintf("%s (%s%s)", list(ranges(shared[how])), each, how))
	}
	w.line("%s%s: %s", units.Count(len(others), "other failed", "others failed"), after, list(told))
}

// ranges folds consecutive task names, such as worker-4 to worker-9.
func ranges(names []string) (folded []string) {
	slices.SortStableFunc(names, func(a, b string) int {
		kind, i, _ := spec.ParseTaskName(a)
		other, j, _ := spec.ParseTaskName(b)
		return cmp.Or(cmp.Compare(kind, other), cmp.Compare(i, j))
	})
	for len(names) > 0 {
		n := 1
		for kind, first, _ := spec.ParseTaskName(names[0]); n < len(names) && names[n] == spec.TaskName(kind, first+n); {
			n++
		}
		if n > 2 {
			folded = append(folded, names[0]+" to "+names[n-1])
		} else {
			folded = append(folded, names[:n]...)
		}
		names = names[n:]
	}
	return folded
}

// unordered reports whether root and a task on another host failed independently, but so close
// together that the hosts' clocks do not show which failed first.
func unordered(root spec.Failure, t *spec.TaskResult) bool {
	a, b := root.Failed(), t.Exit.Failed()
	return t.Host != root.Host && root.Evidence == "" && !a.IsZero() && !b.IsZero() && b.Sub(a).Abs() < clockError && !root.LostPeer() && !t.Exit.LostPeer()
}

// stopped returns the tasks that were stopped before they failed. If a failure ended the run, it
// also returns, as failed, the tasks that exited with their own exit code, either because of the
// first failure or because they were stopped.
func (w *writer) stopped() (stopped, failed []string) {
	for _, t := range w.r.Tasks {
		if t.Failed || t.Exit == nil || w.r.FirstFailure != nil && w.r.FirstFailure.Task == t.Name {
			continue
		}
		switch c := t.Exit.Cause; {
		case c == spec.CauseCollateral && w.r.EndedBy == spec.EndedByFailure && 0 < t.Exit.ExitCode && t.Exit.ExitCode < exitcode.OfSignal(0):
			failed = append(failed, fmt.Sprintf("%s (%s)", t.Name, Short(*t.Exit)))
		case c == spec.CauseCollateral, c == spec.CauseTimeout, c == spec.CausePreempted, c == spec.CauseOperator && w.r.EndedBy == spec.EndedByCancel:
			stopped = append(stopped, t.Name)
		}
	}
	return stopped, failed
}

// cut names the tasks that were killed when the chief grace expired, perhaps while they were saving
// their work. It omits tasks that exited on the stop signal, as servers always do.
func (w *writer) cut() {
	cut := which(w.r, func(t *spec.TaskResult) bool {
		return w.r.EndedBy == spec.EndedByChief && t.Exit.Cause == spec.CauseCollateral && t.Exit.Signal == "SIGKILL"
	})
	w.names(words.Of(cut, func(t *spec.TaskResult) string { return t.Name }),
		"was killed", "were killed", " when the grace period after the chief's exit was over (chief_grace, stop.grace)")
}

// lost names the tasks that were lost with their hosts while they were being stopped. By the rules,
// such a task is not the root cause, but readers may know better: a host is declared lost only
// after minutes, long after its silence has made its peers fail.
func (w *writer) lost() {
	lost := which(w.r, func(t *spec.TaskResult) bool { return t.Exit.Cause == spec.CauseHostLost && !t.Failed })
	w.names(words.Of(lost, placeOf), "was lost with the host in the meantime", "were lost with the host in the meantime", "")
}

// outOfMemory names the tasks that exited on their own after the kernel had killed, or may have
// killed, some of their processes.
func (w *writer) outOfMemory() {
	var texts []string
	names := make(map[string][]string)
	for _, t := range which(w.r, func(t *spec.TaskResult) bool { return t.Exit.OOMKills > 0 && (t.Exit.OK() || t.Failed) }) {
		text := t.Exit.OOMText()
		if f := w.r.FirstFailure; f != nil && f.Task == t.Name && strings.Contains(f.Message, text) {
			continue // the task was already named
		}
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], placeOf(t))
	}
	for _, text := range texts {
		w.line("Out of memory (%s): %s", list(names[text]), text)
	}
}

// unkillable names processes that survived SIGKILL. They still hold their resources, which only the
// machine's owner can change.
func (w *writer) unkillable() {
	if all := which(w.r, func(t *spec.TaskResult) bool { return t.Exit.Unkillable }); len(all) > 0 {
		w.line("Still alive long after SIGKILL, and abandoned: %s", list(words.Of(all, func(t *spec.TaskResult) string {
			return fmt.Sprintf("%s (pid %d)", placeOf(t), t.Exit.PID)
		})))
	}
}
