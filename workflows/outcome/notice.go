package outcome

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// Ended returns the text and the fields of a notice about the end of a run.
func Ended(run string, r *spec.RunResult) spec.Notice {
	n := spec.Notice{
		Text:    Headline(run, r, func(verdict string) string { return verdict }),
		Verdict: r.Verdict, ErrorType: r.ErrorType, ExitCode: &r.ExitCode,
	}
	if f := r.FirstFailure; f != nil {
		n.Task, n.Host = f.Task, f.Host
	}
	return n
}

// Hangs returns the same for a run with silent tasks. found is nil if the stacks are unknown.
func Hangs(run string, silent []string, found *stacktree.Findings) spec.Notice {
	text := fmt.Sprintf("run %s hangs: %s silent: %s", run, plural.Of(len(silent), "task is", "tasks are"), list(silent))
	if found != nil && found.Sentence != "" {
		text += "; " + found.Sentence
	}
	return spec.Notice{Text: text, Tasks: silent}
}
