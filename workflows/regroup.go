package workflows

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
)

// placement says which generation of the group is to be placed, and after what
// delay.
type placement struct {
	generation, first int
	after             time.Duration
}

// startPlacing places the tasks beside everything else; begin gets the outcome.
func (r *clusterRun) startPlacing(ctx workflow.Context, p placement) {
	placing, stopPlacing := workflow.WithCancel(ctx)
	r.stopPlacing = stopPlacing
	workflow.Go(placing, func(placing workflow.Context) {
		err := r.place(placing, p)
		r.events.Send(ctx, request{placed: true, err: err})
	})
}

// regroup begins the next generation: here, or where the history has become long
// in another execution of the workflow, whatever it has to do still. No activity of a
// task is open.
func (r *clusterRun) regroup(ctx workflow.Context, a lifecycle.Regroup) {
	if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		if r.adopted() {
			r.next = r.resumption(ctx)
			return
		}
		r.continueAsNew(ctx)
		return
	}
	r.startPlacing(ctx, placement{generation: a.Generation, first: a.First, after: a.After})
}

// Resumption is what a run takes along when it continues as new.
type Resumption struct {
	Machine lifecycle.Snapshot `json:"machine"`
	// Started is when the first generation began.
	Started time.Time `json:"started"`
	// Run is the execution by which hosts know the run, of which they keep what they
	// have; none: the hosts were given back, and know it by the execution that resumes.
	Run string `json:"run,omitempty"`
	// Execution counts those that have gone on with the tasks.
	Execution int `json:"execution,omitempty"`
	// LogRun is the execution whose ID names the log directories; none: Run.
	LogRun string `json:"log_run,omitempty"`
	// Hosts are those of the run, and Former those that the group has left.
	Hosts  []HeldHost `json:"hosts,omitempty"`
	Former []HeldHost `json:"former,omitempty"`
	// Addresses are those of the tasks, by name.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Lost and Unsettled are queues of hosts.
	Lost      []string `json:"lost,omitempty"`
	Unsettled []string `json:"unsettled,omitempty"`
	// Queues are those of the host workers that had the tasks that any may take,
	// by reservation, where they were given back.
	Queues []string `json:"queues,omitempty"`
	// Output are the last lines of the output so far.
	Output []string `json:"output,omitempty"`
}

// keepOutputBytes bounds the output that goes along.
const keepOutputBytes = 64 << 10

// continueAsNew gives the hosts back and has run return with r.next set, unless
// something has ended the run meanwhile. Hosts of earlier versions know a run by the
// execution that has it; the others are handed over with what they have.
func (r *clusterRun) continueAsNew(ctx workflow.Context) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		if r.settle(ctx, r.hosts) != nil {
			return // the run has ended
		}
		back := r.giveBack(ctx)
		if r.machine.Ending() {
			// A request did, and the hosts are being released again, or a limit, and
			// the machine waits for the end of the placement.
			r.step(ctx, lifecycle.PlacementFailed{})
			r.events.Send(ctx, request{woken: true})
			return
		}
		next := &Resumption{
			Machine: r.machine.Snapshot(back.released),
			Started: r.started, LogRun: r.logRunID(ctx),
			Output: lastOf(slices.Concat(r.output, back.output), keepOutputBytes),
		}
		for _, h := range r.hosts {
			if h.pin != "" || r.lost[h.queue] {
				continue
			}
			for _, group := range h.groups {
				for len(next.Queues) <= group {
					next.Queues = append(next.Queues, "")
				}
				next.Queues[group] = h.queue
			}
		}
		r.next = next
		r.events.Send(ctx, request{woken: true})
	})
}

// lastOf are the last lines that have no more than so many bytes together.
func lastOf(lines []string, most int) []string {
	from := len(lines)
	for from > 0 && most >= len(lines[from-1]) {
		from--
		most -= len(lines[from])
	}
	return lines[from:]
}

// logRunID is the ID of the execution that began the run.
func (r *clusterRun) logRunID(ctx workflow.Context) string {
	return cmp.Or(r.logRun, r.began, workflow.GetInfo(ctx).WorkflowExecution.RunID)
}

// resume takes up what an earlier execution left.
func (r *clusterRun) resume(from *Resumption) {
	r.resumed = true
	r.machine = lifecycle.Resume(r.spec, r.spec.TaskList(), from.Machine)
	r.takeOver(from)
	r.started, r.logRun, r.output = from.Started, from.LogRun, from.Output
	r.begins = placement{generation: from.Machine.Generation, first: from.Machine.First, after: r.machine.Waiting()}
	for _, line := range r.output {
		r.outputBytes += len(line)
	}
	for group, queue := range from.Queues {
		if queue != "" {
			r.former = append(r.former, &host{queue: queue, groups: []int{group}, left: true})
		}
	}
}

// queueBefore is the queue of the host worker that had a reservation in the
// generation before, unless it was lost: whoever has been there has the files in
// its caches, and its slots are ours.
func (r *clusterRun) queueBefore(before []*host, group int) string {
	for _, h := range before {
		for _, g := range h.groups {
			if g == group && h.pin == "" && h.queue != "" && !r.lost[h.queue] {
				return h.queue
			}
		}
	}
	return ""
}

// leave keeps in mind which hosts had tasks in earlier generations and have none in
// this. They are given back in the end: a host that a run has given back takes it
// no more, and the group may have to return.
func (r *clusterRun) leave(before []*host) {
	here := map[string]bool{"": true}
	for _, h := range r.hosts {
		here[h.queue] = true
	}
	r.former = slices.DeleteFunc(slices.Concat(r.former, before), func(h *host) bool { return here[h.queue] || h.left })
}
