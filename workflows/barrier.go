package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// Barrier is one barrier round. Hosts start it with the signal that carries the first arrival, and
// wait for its result. A broken round also completes the workflow.
//
// Package barrier implements the rules, and [spec.BarrierID] returns its workflow ID.
//
// Its history stays small during the longest wait. It contains the start, a timer, an activity
// whose attempts are not recorded, and, for each signal, one event and at most one workflow task. A
// host sends one signal for all of its tasks that arrive within a moment, so 1,000 hosts cause at
// most about 4,000 events. If tasks keep coming and going, the round continues as new.
//
// Only a workflow that continues as new passes from.
func Barrier(ctx workflow.Context, in spec.BarrierInput, from *BarrierResumption) (*spec.BarrierResult, error) {
	b := &barrierWorkflow{
		in: in, round: barrier.New(in.Participants, workflow.Now(ctx)),
		selector: workflow.NewSelector(ctx), signals: workflow.GetSignalChannel(ctx, spec.SignalArrive),
	}
	if from != nil {
		b.resume(from)
	}
	if err := workflow.SetQueryHandlerWithOptions(ctx, spec.QueryBarrier, b.status,
		workflow.QueryHandlerOptions{Description: "Who is waiting at the barrier, and who is missing."}); err != nil {
		return nil, err
	}
	if !b.run(ctx) {
		return nil, workflow.NewContinueAsNewError(ctx, Barrier, in, b.resumption())
	}
	return b.round.Result(), nil
}

type barrierWorkflow struct {
	in       spec.BarrierInput
	round    *barrier.Round
	selector workflow.Selector
	signals  workflow.ReceiveChannel

	// hosts lists the queues of the hosts that have sent a message, in the order of their first
	// messages. Each can be asked which tasks are still alive.
	hosts []string
	names map[string]string // maps the hosts' queues to their names
	// checks counts the checks that no host started.
	checks   int
	checking bool
	// stopCheck cancels the running check, which covers the tasks in asked.
	stopCheck workflow.CancelFunc
	asked     []string

	deadline     time.Time
	stopDeadline workflow.CancelFunc
}

// status answers [spec.QueryBarrier].
func (b *barrierWorkflow) status(of []string) (spec.BarrierStatus, error) {
	s := b.round.Status().Of(of)
	s.Name, s.Round, s.Generation = b.in.Name, b.in.Round, b.in.Run.Generation
	return s, nil
}

// run waits until the round is over. It returns false if the round continues as new.
func (b *barrierWorkflow) run(ctx workflow.Context) (closed bool) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	b.selector.AddReceive(b.signals, func(c workflow.ReceiveChannel, _ bool) {
		var m spec.BarrierMessage
		c.Receive(free, &m)
		b.take(free, m)
	})
	if cancelled := ctx.Done(); cancelled != nil {
		b.selector.AddReceive(cancelled, func(workflow.ReceiveChannel, bool) {
			b.round.Step(barrier.Cancelled{})
		})
	}
	// The first signals are received before anything else is done, so that a round with all
	// participants present costs one workflow task.
	b.drain(free)
	for b.round.Result() == nil {
		if ctx.Err() == nil && b.outgrown(ctx) {
			return false
		}
		b.setDeadline(free)
		b.startChecks(free)
		b.describe(free)
		b.selector.Select(free)
		b.drain(free)
	}
	// Drain every accepted signal, because the server refuses to close a workflow that has not
	// received its last signal.
	b.describe(free)
	return true
}

func (b *barrierWorkflow) drain(ctx workflow.Context) {
	var m spec.BarrierMessage
	for b.signals.ReceiveAsync(&m) {
		b.take(ctx, m)
		m = spec.BarrierMessage{}
	}
}

func (b *barrierWorkflow) take(ctx workflow.Context, m spec.BarrierMessage) {
	now := workflow.Now(ctx)
	if m.Queue != "" {
		b.heardOf(m.Host, m.Queue)
	}
	for _, w := range m.Withdrawn {
		b.round.Step(barrier.Withdrawn{Task: w.Task, Key: w.Key, Now: now})
	}
	for _, a := range m.Arrived {
		b.round.Step(barrier.Arrived{Host: m.Host, Task: a.Task, Key: a.Key, Digest: m.Digest, Value: a.Value, Timeout: a.Timeout, Now: now})
	}
}

// heardOf records a host's name and queue.
func (b *barrierWorkflow) heardOf(host, queue string) {
	if b.names == nil {
		b.names = map[string]string{}
	}
	if _, known := b.names[queue]; !known {
		b.hosts = append(b.hosts, queue)
	}
	b.names[queue] = host
}

// setDeadline sets the timer to the earliest timeout.
func (b *barrierWorkflow) setDeadline(ctx workflow.Context) {
	deadline := b.round.Deadline()
	if deadline.Equal(b.deadline) {
		return
	}
	if b.stopDeadline != nil {
		b.stopDeadline()
		b.stopDeadline = nil
	}
	b.deadline = deadline
	if deadline.IsZero() {
		return
	}
	ctx, b.stopDeadline = workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(ctx, deadline.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: "timeout"})
	b.selector.AddFuture(timer, func(f workflow.Future) {
		if f.Get(ctx, nil) == nil {
			b.deadline = time.Time{}
			b.round.Step(barrier.Passed{Now: workflow.Now(ctx)})
		}
	})
}

// detailNames limits the names in the Web UI.
const detailNames = 20

// describe writes the round's details for the Web UI.
func (b *barrierWorkflow) describe(ctx workflow.Context) {
	s := b.round.Status()
	var text strings.Builder
	fmt.Fprintf(&text, "**%s** · %d of %d arrived", s.State, len(s.Waiting), len(s.Participants))
	if r := b.round.Result(); r != nil {
		if r.Message != "" {
			text.WriteString("\n" + markdown.Block(r.Message, maxDetailText))
		}
	} else {
		var there, missing []string
		for _, w := range s.Waiting {
			there = append(there, w.Task)
		}
		for _, m := range s.Missing {
			missing = append(missing, m.Task)
		}
		if len(there) > 0 {
			text.WriteString(" · arrived: " + namesOf(there))
		}
		text.WriteString(" · missing: " + namesOf(missing))
	}
	run := b.in.Run
	fmt.Fprintf(&text, "\n\nRound %d of run %s", b.in.Round+1, markdown.Workflow(run.WorkflowID, workflow.GetInfo(ctx).Namespace, run.WorkflowID, run.RunID))
	workflow.SetCurrentDetails(ctx, text.String())
}

// namesOf returns the names of the first few tasks.
func namesOf(tasks []string) string {
	names := list.Of(tasks[:min(len(tasks), detailNames)], markdown.Name)
	if more := len(tasks) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
