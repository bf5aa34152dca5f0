package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// placement describes which generation of the group to place, and after what delay.
type placement struct {
	generation, first int
	after             time.Duration
	// requeue reports whether the run first releases its hosts.
	requeue bool
}

// startPlacing runs the placement in a separate coroutine and passes the outcome to begin.
func (r *clusterRun) startPlacing(ctx workflow.Context, p placement) {
	placing, stopPlacing := workflow.WithCancel(ctx)
	r.stopPlacing = stopPlacing
	workflow.Go(placing, func(placing workflow.Context) {
		err := r.placer.place(placing, p)
		r.events.Send(ctx, request{placed: true, err: err})
	})
}

// regroup starts the next generation. If the history has become long, it does so in another
// execution of the workflow, which takes over any pending work. No RunTask activity may be open.
func (r *clusterRun) regroup(ctx workflow.Context, a lifecycle.RestartGroup) {
	if a.Requeue {
		r.pendingSince, r.limitsFrom = workflow.Now(ctx), time.Time{}
	}
	if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		r.next = r.handover.resumption(ctx)
		return
	}
	r.startPlacing(ctx, placement{generation: a.Generation, first: a.First, after: a.After, requeue: a.Requeue})
}

// Resumption is a run's state when it continues as new.
type Resumption struct {
	Machine lifecycle.State `json:"machine"`
	// Started is when the first generation started.
	Started time.Time `json:"started"`
	// LimitsFrom is the start time for timeout and max_run_time, if not Started.
	LimitsFrom time.Time `json:"limits_from,omitzero"`
	// PendingSince is when a run that is now pending returned to the queue.
	PendingSince time.Time `json:"pending_since,omitzero"`
	// Run is the run's first execution, which identifies the run to hosts.
	Run string `json:"run"`
	// Execution counts the executions that have continued the run with its tasks.
	Execution int `json:"execution"`
	// Hosts are the run's hosts, and Former the hosts that the group no longer uses.
	Hosts  []HeldHost `json:"hosts,omitempty"`
	Former []HeldHost `json:"former,omitempty"`
	// Queued is the time of the first request to the fleet.
	Queued time.Time `json:"queued,omitzero"`
	// Bounds holds the generation's short and long lease bounds, if any.
	Bounds *hostapi.Bounds `json:"bounds,omitempty"`
	// Addresses maps task names to addresses.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Lost, Absent and Unsettled hold queues of hosts, and Draining their names.
	Lost      map[string]bool `json:"lost"`
	Absent    map[string]bool `json:"absent"`
	Unsettled map[string]bool `json:"unsettled"`
	Draining  map[string]bool `json:"draining"`
	// Shipped lists the hosts that have already received the run's files.
	Shipped []spec.HostService `json:"shipped,omitempty"`
	// Output holds the last lines of the output so far.
	Output []string `json:"output,omitempty"`
}

// keepOutputBytes limits the output in the resumption.
const keepOutputBytes = 64 << 10

// lastOf returns the last lines that fit into most bytes.
func lastOf(lines []string, most int) []string {
	from := len(lines)
	for from > 0 && most >= len(lines[from-1]) {
		from--
		most -= len(lines[from])
	}
	return lines[from:]
}

// resume restores an earlier execution's state.
func (r *clusterRun) resume(from *Resumption) {
	r.machine = lifecycle.Resume(r.spec, r.spec.TaskList(), from.Machine)
	r.handover.takeOver(from)
	r.started, r.queued, r.output = from.Started, from.Queued, from.Output
	if r.limitsFrom, r.pendingSince = from.LimitsFrom, from.PendingSince; !from.Machine.Requeue.Pending && r.limitsFrom.IsZero() {
		r.limitsFrom = r.started
	}
	if size := from.Machine.Size; size > 0 {
		r.sized = r.spec.Sized(size)
	}
	r.begins = placement{generation: from.Machine.Group.Generation, first: from.Machine.Group.First, after: r.machine.Waiting(), requeue: from.Machine.Requeue.Pending}
	for _, line := range r.output {
		r.outputBytes += len(line)
	}
}

// queueBefore returns the queue of the previous generation's host worker, unless it was lost. Its
// caches contain the files, and its slots are reserved for the run.
func (pl *placer) queueBefore(before []*host, group int) string {
	for _, h := range before {
		for _, g := range h.Groups {
			if g == group && h.Pin == "" && h.Queue != "" && !pl.lost[h.Queue] {
				return h.Queue
			}
		}
	}
	return ""
}

// leave records the hosts that ran tasks only in earlier generations. They are not released before
// the run finishes, because a released host refuses the run, and the group may need to return to
// them.
func (pl *placer) leave(before []*host) {
	here := map[string]bool{"": true}
	for _, h := range pl.hosts {
		here[h.Queue] = true
	}
	pl.former = slices.DeleteFunc(slices.Concat(pl.former, before), func(h *host) bool { return here[h.Queue] })
}
