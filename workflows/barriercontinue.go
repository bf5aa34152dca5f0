package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/barrier"
)

// A round waits without limit. Each time a task comes and goes during the wait, two signals are
// added to the history. After 10,000 signals the server accepts no more, and the waiting tasks
// would never be released. So a round with a long history continues in another execution of its
// workflow, which hosts do not notice.

// BarrierResumption is a round's state when it continues as new.
type BarrierResumption struct {
	Round barrier.State `json:"round"`
	// Hosts lists the hosts that have sent a message, in the order of their first messages.
	Hosts []BarrierHost `json:"hosts,omitempty"`
}

// BarrierHost is a host that can be asked which tasks are still alive.
type BarrierHost struct {
	Queue string `json:"queue"`
	Name  string `json:"name"`
}

// maxTaken limits the arrivals that are passed to the next execution, because the server accepts at
// most 2 MiB.
const maxTaken = 3000

// outgrown reports whether the round must continue as new.
func (b *barrierWorkflow) outgrown(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && b.round.Count() <= maxTaken
}

func (b *barrierWorkflow) resumption() *BarrierResumption {
	r := &BarrierResumption{Round: b.round.State}
	for _, queue := range b.hosts {
		r.Hosts = append(r.Hosts, BarrierHost{Queue: queue, Name: b.names[queue]})
	}
	return r
}

func (b *barrierWorkflow) resume(from *BarrierResumption) {
	b.round = barrier.Resume(b.in.Participants, from.Round)
	for _, h := range from.Hosts {
		b.heardOf(h.Name, h.Queue)
	}
}
