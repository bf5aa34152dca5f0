package outcome

import (
	"strconv"

	"github.com/clusterrun/clusterrun/workflows/spec"
	words "github.com/clusterrun/clusterrun/workflows/text/list"
)

// atTheSameStep describes how often in a row the group failed in the same way at the same step.
func (w *writer) atTheSameStep() {
	last := w.r.FirstFailure
	if last == nil || last.LastStep == nil {
		return
	}
	times, hosts := 1, map[string]bool{last.Host: true}
	for i := len(w.r.GroupRestarts) - 1; i >= 0; i-- {
		f := w.r.GroupRestarts[i].Failure
		if f == nil || !alike(f.Exit, last.Exit) {
			break
		}
		times++
		hosts[f.Host] = true
	}
	if times < 2 {
		return
	}
	where := "the data or the code, or this host"
	if len(hosts) > 1 {
		where = "the data or the code, and not the host"
	}
	w.line("It failed %d times in a row in the same way at step %s: check %s", times, step(*last.LastStep), where)
}

// alike reports whether two processes failed in the same way at the same step.
func alike(a, b spec.Exit) bool {
	if a.LastStep == nil || *a.LastStep != *b.LastStep || a.Cause != b.Cause || a.ExitCode != b.ExitCode {
		return false
	}
	return a.Printed == nil && b.Printed == nil || a.Printed != nil && b.Printed != nil && a.Printed.Place == b.Printed.Place
}

// gaveUp writes why the run gave up if restarts did not make progress.
func (w *writer) gaveUp() {
	if same := which(w.r, func(t *spec.TaskResult) bool { return t.Exit.SameErrors > 0 }); len(same) > 0 {
		w.line("The same error occurred %d times in a row without progress, last from %s: another restart would not help (give_up_on_same_error)",
			same[len(same)-1].Exit.SameErrors, list(words.Of(same, placeOf)))
	}
}

func step(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
