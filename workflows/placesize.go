package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxStarted bounds the inputs of the activities that one workflow task starts, in bytes:
	// the commands of a workflow task travel in one message of at most 4 MiB.
	maxStarted = 3 << 20
	// maxPlacing bounds the inputs of all hosts together for a generation, in bytes. The server
	// terminates a run whose history has 50 MiB.
	maxPlacing = 20 << 20
)

// checkSize refuses a generation whose inputs have no room in a history.
func (pl *placer) checkSize(ctx workflow.Context) error {
	if len(pl.hosts) == 1 || pl.shares(ctx) {
		return nil
	}
	pl.specBytes = pl.specSize(ctx)
	each := pl.specBytes + pl.clusterSize()
	if each*len(pl.hosts) <= maxPlacing {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
		"the run is too large for %d hosts: its description is %d KiB per host, and all hosts may receive %d KiB in all; use fewer hosts or a shorter spec",
		len(pl.hosts), each>>10, maxPlacing>>10), spec.ErrPlacement, nil)
}

// clusterSize returns the approximate size of Prepare's input, in bytes. It does not depend on
// the encoding of this version, so that a replay decides the same.
func (pl *placer) clusterSize() int {
	const member, host = 20, 200
	return member*pl.machine.Size() + host*len(pl.hosts)
}

// specSize returns the size of the spec as JSON. The history keeps it: another version
// of this program may write the same spec in more bytes, or in fewer.
func (pl *placer) specSize(ctx workflow.Context) int {
	var size int
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return sizeOf(pl.spec) }).Get(&size); err != nil {
		return maxPlacing // what cannot be read back cannot be sent
	}
	return size
}

// pace delays activities with large inputs until some of the earlier ones have been answered,
// and so have been sent.
type pace struct {
	size    int
	started []workflow.Future
}

// await returns when an input of that size can be sent.
func (p *pace) await(ctx workflow.Context, size int) error {
	p.size += size
	if p.size <= maxStarted || len(p.started) == 0 {
		return nil
	}
	err := workflow.Await(ctx, func() bool {
		return slices.ContainsFunc(p.started, workflow.Future.IsReady)
	})
	p.size, p.started = size, nil
	return err
}
