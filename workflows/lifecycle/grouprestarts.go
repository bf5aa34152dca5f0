package lifecycle

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxRestartsKept limits how many group restarts are listed. The newest are kept.
	maxRestartsKept = 10
	// maxRestartWords limits each restart's error, in bytes.
	maxRestartWords = 300
)

// keepRestart records that the group restarts because of root, which is nil if an operator
// requested the restart. first is the number of each task's first process in the new generation.
func (a *account) keepRestart(first int, root *spec.Failure) {
	r := spec.GroupRestart{Generation: a.group.Generation + 1, Attempt: first}
	if r.Requeued = a.requeue.next; r.Requeued == spec.RequeueOnPreemption {
		r.Reason = shorten.Text(a.requeue.Notice.String(), maxRestartWords)
	}
	if root == nil {
		root = a.group.root
	}
	if root != nil {
		r.Failure = a.describe(*root)
		r.Failure.Message = shorten.Text(r.Failure.Message, maxRestartWords)
	}
	g := &a.group
	kept := slices.Concat(g.Restarts, []spec.GroupRestart{r}) // earlier answers still use the old slice
	g.Restarts = kept[max(0, len(kept)-maxRestartsKept):]
}

// GroupRestarts returns the last restarts of the group, the oldest first.
func (a *account) GroupRestarts() []spec.GroupRestart { return a.group.Restarts }
