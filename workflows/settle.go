package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// settle returns when nothing of the last generation lives on the hosts that did not report on it.
// Their activities were closed before these hosts could report: they timed out, or they were
// canceled while no worker held them. A reachable host answers immediately. An absent host must
// stop its processes within a certain time; if it may keep them, settle waits for the host.
func (pl *placer) settle(ctx workflow.Context, hosts []*host) error {
	var futures []future[spec.RequestAnswer]
	var asked []*host
	tasks := pl.tasksByHost()
	for _, h := range hosts {
		if !pl.unsettled[h.Queue] {
			continue
		}
		if pl.bounds != nil {
			asked = append(asked, h)
			answer, settable := workflow.NewFuture(ctx)
			workflow.Go(ctx, func(ctx workflow.Context) { settable.Set(spec.RequestAnswer{}, pl.settled(ctx, h, tasks[h])) })
			futures = append(futures, future[spec.RequestAnswer]{answer})
			continue
		}
		actx := settling(ctx, h.Queue, pl.givenUp(len(hosts)), pl.spec, "what "+h.Name+" may have left")
		asked = append(asked, h)
		futures = append(futures, call(actx, hostapi.Host.SettleTasks, hostapi.TasksInput{
			Group: spec.Group{Run: pl.began, Generation: pl.machine.Generation() - 1}, Tasks: tasks[h],
		}))
	}
	for i, f := range futures {
		if _, err := f.get(ctx); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			workflow.GetLogger(ctx).Warn("a host is declared lost", "host", asked[i].Name, "error", err)
			pl.gone(asked[i])
			if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
				pl.absent[asked[i].Queue] = true
				pl.machine.Step(lifecycle.HostGivenUp{Host: asked[i].Name})
			}
		}
	}
	clear(pl.unsettled)
	return nil
}

// givenUp returns how long a host must be silent before none of the run's processes can be alive on
// it, or 0 if they may live forever. hosts is the number of hosts in the run.
func (pl *placer) givenUp(hosts int) time.Duration {
	f, ok := lifecycle.FenceOf(pl.spec, hosts)
	if !ok {
		return 0
	}
	return f.Passed()
}
