package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxPlacing bounds what all hosts together are told, in bytes: the commands of
// one workflow task travel in one message of at most 4 MiB.
const maxPlacing = 3 << 20

// checkSize refuses what could never be sent. Larger runs need a workflow for
// each host.
func (r *clusterRun) checkSize(ctx workflow.Context) error {
	if len(r.hosts) == 1 {
		return nil
	}
	// What Prepare tells of a task is about this long, its address apart.
	const member = 160
	each := r.specSize(ctx) + member*len(r.spec.TaskList())
	if each*len(r.hosts) <= maxPlacing {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
		"the run is too large for %d hosts: each is told %d KiB, and together it may be %d KiB; use fewer hosts, or a shorter spec",
		len(r.hosts), each>>10, maxPlacing>>10), spec.ErrPlacement, nil)
}

// specSize returns the size of the spec as JSON. The history keeps it: another version
// of this program may write the same spec in more bytes, or in fewer.
func (r *clusterRun) specSize(ctx workflow.Context) int {
	var size int
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return sizeOf(r.spec) }).Get(&size); err != nil {
		return maxPlacing // what cannot be read back cannot be sent
	}
	return size
}
