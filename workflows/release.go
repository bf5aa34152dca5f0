package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// maxSharedMemory limits the hosts with leftover shared memory that a result lists.
const maxSharedMemory = 20

// release releases all hosts and passes every exit to the machine.
func (r *clusterRun) release(ctx workflow.Context) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		back := r.releaser.giveBack(ctx)
		if back.served != "" {
			r.releaser.endClosures(ctx, back.served)
		}
		r.leftOut = append(r.leftOut, back.leftOut...)
		r.releaser.keepOutput(back.output)
		r.events.Send(ctx, request{event: back.released})
	})
}

// givenBack collects the results of the hosts' releases.
type givenBack struct {
	released lifecycle.Released
	output   []string
	leftOut  []string // tasks whose values are omitted because they are too large together
	// served is a host worker's queue if its tasks served closures.
	served string
}

// giveBack runs Release on every reserved host. A host that does not answer is reported as a
// problem, but does not affect the other hosts. The activity may be repeated.
//
// A host that the run has given up is not asked, because none of the run's processes live on it and
// the run should not wait for it. When the host returns, its reconciler frees the run's
// reservations.
func (g *releaser) giveBack(ctx workflow.Context) givenBack {
	var back givenBack
	e := lifecycle.Released{Exits: map[string][]spec.Exit{}, Values: map[string][]byte{}, Hosts: map[string]string{}}
	lost := func(h *host, former bool, why string) {
		e.Lost = append(e.Lost, h.Name)
		if !former {
			e.Problems = append(e.Problems, "host "+h.Name+" "+why)
		}
	}
	// Hosts that the group has left come first, because the results of later hosts are newer.
	hosts := append(slices.Clone(g.former), g.hosts...)
	futures := make([]future[hostapi.ReleaseOutput], len(hosts))
	for i, h := range hosts {
		wait := releaseWait
		if i < len(g.former) && g.lost[h.Queue] {
			wait = lostWait
		}
		if h.Queue != "" && !g.absent[h.Queue] && (!spec.IsAgentsQueue(g.queue) || !g.lost[h.Queue]) {
			futures[i] = g.releaseOn(ctx, h, wait)
		}
	}
	for i, h := range hosts {
		former := i < len(g.former)
		if futures[i].Future == nil {
			if h.Queue != "" {
				lost(h, former || !g.absent[h.Queue], "did not return; values and earlier exits that only it has are missing")
			}
			continue
		}
		out, err := futures[i].get(ctx)
		if err != nil {
			lost(h, former, "could not be released: "+reasonOf(err))
			continue
		}
		for _, task := range sortedKeys(out.Exits) {
			e.Exits[task] = append(e.Exits[task], out.Exits[task]...)
			slices.SortStableFunc(e.Exits[task], func(a, b spec.Exit) int { return a.Restart - b.Restart })
			e.Hosts[task] = h.Name
		}
		for _, task := range sortedKeys(out.Values) {
			if !former {
				e.Values[task] = out.Values[task]
			}
		}
		back.leftOut = append(back.leftOut, out.LeftOut...)
		if s := out.SharedMemory; s != nil && len(e.SharedMemory) < maxSharedMemory {
			e.SharedMemory = append(e.SharedMemory, *s)
		}
		e.Usage = e.Usage.With(out.Usage)
		back.output = append(back.output, out.Output...)
		if out.Served {
			back.served = h.Queue
		}
	}
	for _, h := range g.hosts {
		for _, t := range h.tasks {
			if _, ok := e.Hosts[t.Name()]; !ok {
				e.Hosts[t.Name()] = h.Name
			}
		}
	}
	back.released = e
	return back
}

// endClosures closes the run's closure queue. A queue that cannot be reached closes within a minute
// on its own; see ClosuresCheck.
func (g *releaser) endClosures(ctx workflow.Context, queue string) {
	err := workflow.ExecuteActivity(ending(ctx, queue), closure.ActivityEndClosures, closure.EndInput{
		Run: spec.RunRef{
			WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, RunID: g.began,
		},
		Over: fmt.Sprintf("run %s has ended", workflow.GetInfo(ctx).WorkflowExecution.ID),
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("could not close the call queue", "error", err)
	}
}

// maxOutput limits a result's output, in bytes: the result must fit into one payload.
const maxOutput = 256 << 10

func (g *releaser) keepOutput(lines []string) {
	for _, line := range lines {
		if g.outputBytes += len(line); g.outputBytes > maxOutput {
			return
		}
		g.output = append(g.output, line)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	//workflowcheck:ignore the keys are sorted afterwards
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// releaseOn runs Release on a host, which must start it within wait. A host that did not report on
// a task may be gone, so releaseOn first asks whether it answers. Otherwise the release would go to
// the open poll of a host that is gone, and only fail after the longest time that a release may
// take, which includes the processes' grace.
func (g *releaser) releaseOn(ctx workflow.Context, h *host, wait time.Duration) future[hostapi.ReleaseOutput] {
	release := func(ctx workflow.Context) future[hostapi.ReleaseOutput] {
		return callHere(releasing(ctx, h.Queue, wait, g.spec, "return "+markdown.Name(h.Name)), hostapi.Host.Release, hostapi.ReleaseInput{Run: g.began})
	}
	if !g.unsettled[h.Queue] || spec.IsLocalQueue(h.Queue) {
		return release(ctx)
	}
	within := min(wait, heartbeatTimeout)
	if g.bounds != nil {
		within = min(wait, lease.Bounds(*g.bounds).Passed())
	}
	answer, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		asking := answering(ctx, h.Queue, within, "check whether "+markdown.Name(h.Name)+" is there", heartbeatTimeout)
		if err := workflow.ExecuteActivity(asking, hostapi.MethodName(hostapi.Host.Answer)).Get(ctx, nil); temporal.IsTimeoutError(err) {
			settable.SetError(err)
			return
		}
		settable.Set(release(ctx).get(ctx))
	})
	return future[hostapi.ReleaseOutput]{answer}
}
