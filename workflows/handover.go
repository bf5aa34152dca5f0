package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A run with a long history continues in another execution of its workflow. The server closes the
// old execution's activities, and their hosts leave the processes running. The next execution
// starts the activities again. The hosts then find each process either alive, or exited with its
// exit not yet reported.

const (
	// manyRequests and eventsOfTask show whether requests made a history long. A large run's
	// history may also be long because all its tasks are exiting; that run is about to finish.
	manyRequests, eventsOfTask = 500, 8
	// eventsOfHost and bytesOfHost are allowances per host for a run with at least manyHosts hosts.
	manyHosts, eventsOfHost, bytesOfHost = 64, 20, 450
	// maxEvents limits the history: the server terminates a workflow with 51,200 events, or with
	// 10,000 signals.
	maxEvents = 20_000
	// leavingTakes limits how long requests are refused at a time so that no request is open. A
	// request to an absent host may stay open longer.
	leavingTakes = 10 * time.Second
	// bytesOfTask is a running task's approximate size in the resumption. maxCarried limits the
	// size of the resumption and the spec together, because the server accepts 2 MiB.
	bytesOfTask, maxCarried = 130, 1800 << 10
	// maxAddedBytes limits the size, in the resumption, of tasks that are not in the spec or have a
	// different command than in the spec.
	maxAddedBytes = 256 << 10
)

// handOver reports whether the run continues in another execution now, and sets r.next if so. It
// does so only if nothing in progress would be lost.
func (o *handover) handOver(ctx workflow.Context) bool {
	if !o.isLong(ctx) {
		o.leaving = time.Time{}
		return false
	}
	if now := workflow.Now(ctx); o.leaving.IsZero() || now.Sub(o.leaving) > 2*leavingTakes {
		o.leaving = now
	}
	switch {
	case !workflow.AllHandlersFinished(ctx):
		o.wakeWhenFinished(ctx)
		return false
	case o.selector.HasPending(), o.sending > 0:
		return false // pending events and notices come first
	}
	o.next = o.resumption(ctx)
	return true
}

// isLong reports whether the run should continue in another execution, and is in a state that
// allows it.
func (o *handover) isLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() && o.machine.Quiet() &&
		(o.requests >= manyRequests || info.GetCurrentHistoryLength() >= min(o.times(eventsOfTask, eventsOfHost), maxEvents)) &&
		o.machine.AddedSize() <= maxAddedBytes && o.inputBytes+o.times(bytesOfTask, bytesOfHost) <= maxCarried
}

// times returns a number that grows with the number of tasks and, if there are many hosts, with the
// number of hosts.
func (o *handover) times(task, host int) int {
	n := task * o.machine.Size()
	if len(o.hosts) >= manyHosts {
		n += host * len(o.hosts)
	}
	return n
}

// wakeWhenFinished wakes the run's loop after all requests are answered.
func (o *handover) wakeWhenFinished(ctx workflow.Context) {
	if o.awaiting {
		return
	}
	o.awaiting = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }) == nil {
			o.awaiting = false
			o.events.Send(ctx, request{woken: true})
		}
	})
}

// isLeaving reports whether requests are currently refused. It is for validators. A request that
// they refuse leaves nothing in the history, and is repeated in the next execution.
func (o *handover) isLeaving(ctx workflow.Context) bool {
	return !o.leaving.IsZero() && o.machine.Quiet() && workflow.Now(ctx).Sub(o.leaving) < leavingTakes
}

func errGoesOn() error {
	return temporal.NewNonRetryableApplicationError("the run is continuing as new; try again", spec.ErrTryAgain, nil)
}

// HeldHost is a host's state for the next execution.
type HeldHost struct {
	Name  string `json:"name"`
	Queue string `json:"queue"` // the host worker's own queue
	// Pin is the name that the spec pins tasks to, or empty for any host.
	Pin string `json:"pin,omitempty"`
	// Groups are its reservations.
	Groups []int `json:"groups,omitempty"`
	// Devices lists the GPUs on the host that the fleet assigned to the run.
	Devices []string `json:"devices,omitempty"`
	// Witness reports whether the generation's other hosts ask this host whether it reaches the
	// server.
	Witness bool `json:"witness,omitempty"`
	// Service (see [hostapi.ReserveOutput]) and Tasks are set only in a [Resumption]. Tasks lists
	// the tasks placed on the host, including tasks outside the spec.
	Service *spec.HostService `json:"service,omitempty"`
	Tasks   []string          `json:"tasks,omitempty"`
}

// resumption returns the state for the next execution.
func (o *handover) resumption(ctx workflow.Context) *Resumption {
	noteStart(ctx)
	next := &Resumption{
		Machine: o.machine.State(), Started: o.started, Queued: o.queued, PendingSince: o.pendingSince,
		Run: o.began, Execution: o.execution + 1,
		Hosts: o.held(o.hosts), Former: o.held(o.former), Addresses: o.addresses, Bounds: o.bounds,
		Lost: o.lost, Absent: o.absent, Unsettled: o.unsettled, Draining: o.draining,
		Shipped: o.shipped, Output: lastOf(o.output, keepOutputBytes),
	}
	if o.limitsFrom != o.started {
		next.LimitsFrom = o.limitsFrom
	}
	return next
}

// noteStart writes a run's start time into its memo, for later executions.
func noteStart(ctx workflow.Context) {
	info := workflow.GetInfo(ctx)
	if info.Memo.GetFields()[spec.MemoStarted] != nil {
		return
	}
	err := workflow.UpsertMemo(ctx, map[string]any{spec.MemoStarted: info.WorkflowStartTime.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		workflow.GetLogger(ctx).Warn("the start time of the run was not recorded", "error", err)
	}
}

func (o *handover) held(hosts []*host) []HeldHost {
	var held []HeldHost
	tasks := o.placer.tasksByHost()
	for _, h := range hosts {
		if h.Queue == "" {
			continue
		}
		kept := h.HeldHost
		kept.Service, kept.Tasks = h.out.Service, tasks[h]
		held = append(held, kept)
	}
	return held
}

// tasksByHost returns the tasks placed on each host, including tasks outside the spec.
func (pl *placer) tasksByHost() map[*host][]string {
	tasks := map[*host][]string{}
	for _, task := range sortedKeys(pl.placed) {
		h := pl.placed[task]
		tasks[h] = append(tasks[h], task)
	}
	return tasks
}

// takeOver restores the state that resumption returned.
func (o *handover) takeOver(from *Resumption) {
	o.began, o.execution = from.Run, from.Execution
	o.lost, o.absent, o.unsettled, o.draining = from.Lost, from.Absent, from.Unsettled, from.Draining
	o.shipped, o.bounds = from.Shipped, from.Bounds
	if from.Addresses != nil { // no task was placed
		o.addresses = from.Addresses
	}
	tasks := o.spec.TaskList()
	for _, k := range from.Hosts {
		h := k.host()
		for _, task := range k.Tasks {
			o.placed[task] = h
		}
		for _, t := range tasks {
			if o.placed[t.Name()] == h {
				h.tasks = append(h.tasks, t)
			}
		}
		o.hosts = append(o.hosts, h)
	}
	for _, k := range from.Former {
		o.former = append(o.former, k.host())
	}
}

func (k HeldHost) host() *host {
	return &host{HeldHost: k, out: hostapi.ReserveOutput{Host: k.Name, Service: k.Service}}
}
