package outcome

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// outOfTime names the tasks that were unfinished when a time limit expired.
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
		w.line("It passed while all tasks were being restarted")
	case w.r.NotStarted:
		w.line("The limit is 0, so no task was started")
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
		w.line("Still running: %s", list(places))
		w.printed()
		w.doing(names)
	case w.r.FirstFailure == nil:
		w.line("All tasks exited when it passed, while their stacks were being saved")
	}
	f := w.r.FirstFailure
	if f == nil {
		return
	}
	if f.LostPeer() { // perhaps stopped when the limit expired
		w.line("%s %s because it had lost a peer%s", place(f.Task, f.Host), HowEnded(*f), w.at(*f))
	} else {
		w.line("Before that, %s %s%s", place(f.Task, f.Host), HowEnded(*f), w.at(*f))
	}
	w.quote(f.Message, false)
	if failures > 1 {
		w.line("%s after it", units.Count(failures-1, "other failed", "others failed"))
	}
	w.logs(*f)
}

// printed lists errors that tasks printed about themselves, earliest first. A program may outlive a
// thread that failed, while other tasks wait for that thread.
func (w *writer) printed() {
	first, f := w.r.FirstError, w.r.FirstFailure
	all := which(w.r, func(t *spec.TaskResult) bool {
		return !t.Exit.OK() && t.Exit.Printed.Own() && (first == nil || first.Task != t.Name) && (f == nil || f.Task != t.Name || silent(w.r))
	})
	slices.SortStableFunc(all, func(a, b *spec.TaskResult) int { return a.Exit.Printed.By.Compare(b.Exit.Printed.By) })
	for _, t := range all[:min(len(all), maxOthers)] {
		age := ""
		if p := t.Exit.Printed; !p.By.IsZero() && t.Exit.Ended.After(p.By) {
			age = " " + span(t.Exit.Ended.Sub(p.By)) + " before its end"
		}
		w.line("%s (rank %d) printed an error%s: %s", place(t.Name, t.Host), t.Rank, age, t.Exit.Printed)
	}
	if more := len(all) - maxOthers; more > 0 {
		w.line("and so did %s", units.Count(more, "other task", "other tasks"))
	}
}

// doing describes what the unfinished tasks were doing, and lists the files with their stacks and
// logs. If it is known which tasks held up the run or differ from the rest, it is restricted to
// them.
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
		case t.StacksFile != "": // the stacks are next to the logs
			w.path("Stacks of "+name, t.StacksFile)
			n++
		case w.r.Stacks == nil && t.Exit != nil && t.Exit.LogDir != "" && w.o.Run == "":
			w.path("Logs of "+name, t.Exit.LogDir)
			n++
		}
	}
}

// telling returns the tasks with stack files worth reading: the outliers, or else one per class.
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

// traces lists torch's Flight Recorder files, with the tasks' last collectives. The root cause's
// file comes first.
func (w *writer) traces() {
	isRoot := func(t *spec.TaskResult) bool { return w.r.FirstFailure != nil && t.Name == w.r.FirstFailure.Task }
	traced := slices.Concat(
		which(w.r, func(t *spec.TaskResult) bool { return t.Exit.TraceFile != "" && isRoot(t) }),
		which(w.r, func(t *spec.TaskResult) bool { return t.Exit.TraceFile != "" && !isRoot(t) }),
	)
	for _, t := range traced[:min(len(traced), maxFiles)] {
		w.path("Flight Recorder of "+t.Name, t.Exit.TraceFile)
	}
	if more := len(traced) - maxFiles; more > 0 {
		w.line("and %s more of the Flight Recorder, each next to the logs of its task", units.Count(more, "file", "files"))
	}
}
