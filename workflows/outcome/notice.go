package outcome

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Ended returns the text and fields of the notice that a run has finished.
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

// Hangs is like Ended, but for a run with silent tasks. found is nil if the stacks are unknown.
func Hangs(run string, names []string, found *stacktree.Findings) spec.Notice {
	text := fmt.Sprintf("run %s hangs: %s: %s", run, silence(len(names)), list(names))
	if found != nil && found.Sentence != "" {
		text += "; " + found.Sentence
	}
	return spec.Notice{Text: text, Tasks: names}
}
