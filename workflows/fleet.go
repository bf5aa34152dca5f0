package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Fleet tracks a queue's hosts and grants them to runs. The first host to join starts the workflow.
// Package fleet implements the rules, and [spec.FleetID] returns its workflow ID.
//
// Each host keeps an activity open while it is up. Its heartbeats add nothing to the history. When
// the activity closes, the host is gone. If a fleet is terminated, its hosts start it again and
// report their runs, and waiting runs repeat their requests.
func Fleet(ctx workflow.Context, from *fleet.State) error {
	f := &fleetOf{
		machine:  fleet.New(),
		queue:    workflow.GetInfo(ctx).TaskQueueName,
		selector: workflow.NewSelector(ctx),
		leases:   map[string]*hostLease{},
		updated:  workflow.NewBufferedChannel(ctx, 1),
	}
	if from != nil {
		last, err := from.Unpack()
		if err != nil {
			return err
		}
		f.machine = fleet.Resume(last)
	}
	free, _ := workflow.NewDisconnectedContext(ctx)
	if err := f.register(free); err != nil {
		return err
	}
	for _, h := range f.machine.Hosts() {
		if h.State != fleet.HostSilent {
			f.lease(free, h.Host)
		}
	}
	messages := workflow.GetSignalChannel(free, spec.SignalFleet)
	f.selector.AddReceive(messages, func(c workflow.ReceiveChannel, _ bool) {
		var m fleet.Message
		c.Receive(free, &m)
		f.take(free, m)
	})
	f.selector.AddReceive(f.updated, func(c workflow.ReceiveChannel, _ bool) { c.Receive(free, nil) })
	f.selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { f.cancelled = true })
	for !f.cancelled {
		for m := (fleet.Message{}); messages.ReceiveAsync(&m); m = (fleet.Message{}) {
			f.take(free, m)
		}
		f.wake(free)
		f.check(free)
		f.describe(free)
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && f.sending == 0 && workflow.AllHandlersFinished(ctx) && !f.selector.HasPending() {
			next, err := f.machine.State().Pack()
			if err != nil {
				return err
			}
			return workflow.NewContinueAsNewError(ctx, Fleet, &next)
		}
		f.selector.Select(free)
	}
	return ctx.Err()
}

// fleetOf holds a fleet's state.
type fleetOf struct {
	machine  *fleet.Machine
	queue    string
	selector workflow.Selector
	// updated receives an element after each update, because a waiting selector does not notice
	// cases that were added to it.
	updated workflow.Channel
	// leases holds the hosts' leases by name.
	leases map[string]*hostLease
	// checking reports whether a check is open.
	checking bool
	// wakes is when the timer that stopWake cancels fires.
	wakes    time.Time
	stopWake workflow.CancelFunc
	// sending is the number of signals in transit.
	sending   int
	cancelled bool
}

// hostLease is an activity that stays open while its host is up.
type hostLease struct{ stop workflow.CancelFunc }

// register installs the fleet's handlers.
func (f *fleetOf) register(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandlerWithOptions(ctx, spec.QueryHosts, func(after string) ([]fleet.HostStatus, error) {
			return f.machine.HostsAfter(after, fleet.HostsPerPage), nil
		}, workflow.QueryHandlerOptions{Description: "The hosts after a given name, at most 100, and what runs use on them."}),
		workflow.SetQueryHandlerWithOptions(ctx, spec.QueryQueue, func(after int) ([]fleet.Waiting, error) {
			return f.machine.QueueAfter(after, fleet.WaitingPerPage), nil
		}, workflow.QueryHandlerOptions{Description: "Pending runs after a given position, at most 1,000, with reasons."}),
		workflow.SetQueryHandlerWithOptions(ctx, spec.QueryPlan, func(d fleet.Demand) (fleet.Grant, error) {
			places, why := f.machine.Plan(d)
			g := fleet.Grant{Places: places}
			if why != nil {
				g.Refusal = why.Error()
			}
			return g, nil
		}, workflow.QueryHandlerOptions{Description: "Where a run would be placed now."}),
		handle(ctx, f, spec.UpdateJoin, "Adds a host.", f.machine.CheckJoin, f.join),
		handle(ctx, f, spec.UpdateCordon, "Cordons a host or drains it.", f.machine.CheckCordon,
			func(ctx workflow.Context, c fleet.Cordoned) {
				c.Now = workflow.Now(ctx)
				f.step(ctx, c)
			}),
		handle(ctx, f, spec.UpdateUncordon, "Uncordons a host.", f.machine.CheckUncordon,
			func(ctx workflow.Context, u fleet.Uncordoned) {
				u.Now = workflow.Now(ctx)
				f.step(ctx, u)
			}),
	)
}

// handle installs an update's handler: do carries out the update unless check refuses it.
func handle[Q any](ctx workflow.Context, f *fleetOf, name, description string, check func(Q) error, do func(workflow.Context, Q)) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, name, func(ctx workflow.Context, q Q) error {
		do(ctx, q)
		f.updated.SendAsync(nil)
		return nil
	}, workflow.UpdateHandlerOptions{
		Description: description,
		Validator: func(_ workflow.Context, q Q) error {
			if err := check(q); err != nil {
				return refused(err)
			}
			return nil
		},
	})
}

func (f *fleetOf) join(ctx workflow.Context, j fleet.Joined) {
	j.Now = workflow.Now(ctx)
	f.step(ctx, j)
	f.lease(ctx, j.Host)
}

func (f *fleetOf) take(ctx workflow.Context, m fleet.Message) {
	now := workflow.Now(ctx)
	switch {
	case m.Asked != nil:
		m.Asked.Now = now
		f.step(ctx, *m.Asked)
	case m.Placed != nil:
		m.Placed.Now = now
		f.step(ctx, *m.Placed)
	case m.Refused != nil:
		m.Refused.Now = now
		f.step(ctx, *m.Refused)
	case m.Freed != nil:
		m.Freed.Now = now
		f.step(ctx, *m.Freed)
	}
}

// step passes an event to the machine and carries out its actions.
func (f *fleetOf) step(ctx workflow.Context, e fleet.Event) {
	for _, a := range f.machine.Step(e) {
		switch a := a.(type) {
		case fleet.Grant:
			f.tell(ctx, a.Run, fleet.Answer{Grant: &a})
		case fleet.Move:
			f.tell(ctx, a.Run, fleet.Answer{Move: &a})
		case fleet.Return:
			f.tell(ctx, a.Run, fleet.Answer{Return: &a})
		}
	}
}

// wake sets the timer to the time that the machine waits for.
func (f *fleetOf) wake(ctx workflow.Context) {
	at := f.machine.Wake()
	if at.Equal(f.wakes) {
		return
	}
	if f.stopWake != nil {
		f.stopWake()
		f.stopWake = nil
	}
	if f.wakes = at; at.IsZero() {
		return
	}
	ctx, f.stopWake = workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(ctx, at.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: "check the queue again"})
	f.selector.AddFuture(timer, func(timer workflow.Future) {
		if timer.Get(ctx, nil) == nil {
			f.wakes = time.Time{}
			f.step(ctx, fleet.Passed{Now: workflow.Now(ctx)})
		}
	})
}

// tell signals a run. If the run no longer exists, its hosts are freed. If it cannot receive the
// signal now, for example because its execution has reached the limit of signals, it keeps its
// hosts and tell is repeated.
func (f *fleetOf) tell(ctx workflow.Context, run fleet.Run, what fleet.Answer) {
	f.sending++
	// The run ID is omitted because the run may have continued in another execution.
	sent := workflow.SignalExternalWorkflow(ctx, run.WorkflowID, "", spec.SignalFleet, what)
	f.selector.AddFuture(sent, func(sent workflow.Future) {
		f.sending--
		err := sent.Get(ctx, nil)
		if _, gone := errors.AsType[*temporal.UnknownExternalWorkflowExecutionError](err); gone {
			f.step(ctx, fleet.Freed{Run: run, Now: workflow.Now(ctx)})
		} else if err != nil {
			f.tellLater(ctx, run, what)
		}
	})
}

// tellLater calls tell once tellAgain has passed.
func (f *fleetOf) tellLater(ctx workflow.Context, run fleet.Run, what fleet.Answer) {
	f.sending++
	timer := workflow.NewTimerWithOptions(ctx, tellAgain, workflow.TimerOptions{Summary: "tell " + run.WorkflowID + " again"})
	f.selector.AddFuture(timer, func(timer workflow.Future) {
		f.sending--
		if timer.Get(ctx, nil) == nil {
			f.tell(ctx, run, what)
		}
	})
}

const (
	// A host counts as silent after missedBeats missed heartbeats. It must start its lease within
	// the same time.
	missedBeats = 3
	// checkTakes limits a check's attempt, and checkAgain is the interval between attempts.
	// maxChecked limits the runs that one check covers.
	checkTakes, checkAgain, maxChecked = 30 * time.Second, 5 * time.Second, 200
	// tellAgain is the delay before a failed signal to a run is repeated.
	tellAgain = 5 * time.Second
)

// lease starts a host's lease and cancels the previous one.
func (f *fleetOf) lease(ctx workflow.Context, h fleet.Host) {
	if old := f.leases[h.Name]; old != nil {
		old.stop()
	}
	beat := fleet.HeartbeatInterval(f.machine.Count())
	actx, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              spec.InstanceQueue(f.queue, h.Name, h.Instance),
		ScheduleToStartTimeout: missedBeats * beat,
		StartToCloseTimeout:    tenYears,
		HeartbeatTimeout:       missedBeats * beat,
		RetryPolicy:            once(),
		Summary:                "host " + markdown.Name(h.Name),
	}))
	l := &hostLease{stop}
	f.leases[h.Name] = l
	held := workflow.ExecuteActivity(actx, spec.ActivityHostLease, fleet.HostLeaseInput{Host: h.Name, Instance: h.Instance, Beat: beat})
	f.selector.AddFuture(held, func(held workflow.Future) {
		if f.leases[h.Name] != l {
			return // it has joined again
		}
		delete(f.leases, h.Name)
		now := workflow.Now(ctx)
		if held.Get(ctx, nil) == nil {
			f.step(ctx, fleet.Left{Name: h.Name, Instance: h.Instance, Now: now})
		} else {
			f.step(ctx, fleet.Silent{Name: h.Name, Instance: h.Instance, Now: now})
		}
	})
}

// check asks a host whether runs have finished without a message. The request names the runs that
// are first in line, and those that have not confirmed their placement. Later attempts of the
// activity, which do not add to the history, check again. After a while the activity is restarted
// with an updated list of runs.
func (f *fleetOf) check(ctx workflow.Context) {
	runs := f.machine.Unplaced(maxChecked)
	host, there := f.machine.AnyHost(func(name string) bool { return f.leases[name] != nil })
	if f.checking || len(runs) == 0 || !there {
		return
	}
	actx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              spec.InstanceQueue(f.queue, host.Name, host.Instance),
		StartToCloseTimeout:    checkTakes,
		ScheduleToCloseTimeout: checkTakes,
		RetryPolicy:            every(checkAgain),
		Summary:                "check whether still pending: " + units.Count(len(runs), "run", "runs"),
	})
	f.checking = true
	done := workflow.ExecuteActivity(actx, spec.ActivityFleetCheck, fleet.CheckInput{Runs: runs})
	f.selector.AddFuture(done, func(done workflow.Future) {
		f.checking = false
		var out fleet.CheckOutput
		if done.Get(ctx, &out) != nil {
			return
		}
		for _, run := range out.Ended {
			f.step(ctx, fleet.Freed{Run: run, Now: workflow.Now(ctx)})
		}
	})
}

// describe writes the fleet's details for the Web UI.
func (f *fleetOf) describe(ctx workflow.Context) {
	hosts, front := f.machine.HostsAfter("", detailRows), f.machine.Front(detailNames)
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**, %s\n\n| host | state | slots used | GPUs used | runs |\n|---|---|---|---|---|\n",
		units.Count(f.machine.Count(), "host", "hosts"), units.Count(f.machine.Waiting(), "run is waiting", "runs are waiting"))
	for _, h := range hosts {
		slots := "no limit"
		if h.Slots > 0 {
			slots = fmt.Sprintf("%d of %d", h.Used, h.Slots)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d of %d | %d |\n", markdown.Cell(h.Name), h.State, slots, h.UsedGPUs, len(h.GPUs), len(h.Holds))
	}
	if len(front) > 0 {
		b.WriteString("\n| position | run | priority | why |\n|---|---|---|---|\n")
		for _, w := range front {
			fmt.Fprintf(&b, "| %d | %s | %d | %s |\n", w.Position, markdown.Cell(w.Run.WorkflowID), w.Priority, markdown.Cell(w.Why))
		}
	}
	workflow.SetCurrentDetails(ctx, b.String())
}
