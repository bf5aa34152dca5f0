package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// placeInFleet has the fleet say where the tasks go, and those hosts take them. If one does
// not, the others give back what they reserved, and the fleet is asked again.
func (r *clusterRun) placeInFleet(ctx workflow.Context, p placement) error {
	since := workflow.Now(ctx)
	if r.queued.IsZero() {
		r.queued = since
	}
	demand := r.demand()
	if hosts := r.stay(); hosts != nil {
		r.hosts = hosts
		if refused, err := r.reserveAll(ctx, p); refused == nil {
			return err
		}
		r.unreserve(ctx, r.hosts, p.generation)
	}
	for try := 0; ; try++ {
		places, err := r.ask(ctx, p, demand, since, try)
		if err != nil {
			return err
		}
		r.hosts = r.hostsAt(places)
		for _, h := range r.hosts {
			delete(r.draining, h.name) // it takes tasks again
		}
		if err := r.checkSize(ctx); err != nil {
			return err
		}
		refused, err := r.reserveAll(ctx, p)
		if err != nil {
			return err
		}
		if refused == nil {
			workflow.Go(ctx, func(ctx workflow.Context) {
				r.tellFleet(ctx, fleet.Message{Placed: &fleet.Placed{Run: r.inFleet(ctx), Generation: p.generation}})
			})
			return nil
		}
		refused.Run, refused.Generation, refused.Try = r.inFleet(ctx), p.generation, try
		r.unreserve(ctx, r.hosts, p.generation)
		r.former, r.hosts = append(r.former, r.hosts...), nil
		r.tellFleet(ctx, fleet.Message{Refused: refused})
	}
}

// stay returns the hosts of the last generation, if the group can stay where it is, and
// wants no more.
func (r *clusterRun) stay() []*host {
	if r.grows() {
		return nil
	}
	for _, h := range r.hosts {
		if h.queue == "" || r.lost[h.queue] || r.draining[h.name] {
			return nil
		}
	}
	return r.hosts
}

// ask returns where the fleet has room for the tasks, once it has. The question is repeated
// now and then: a fleet that was terminated knows of nobody who waits.
func (r *clusterRun) ask(ctx workflow.Context, p placement, demand fleet.Demand, since time.Time, try int) ([]fleet.Place, error) {
	asked := fleet.Asked{Run: r.inFleet(ctx), Generation: p.generation, Try: try, Demand: demand, Since: since}
	if r.spec.IsElastic() {
		asked.Since = r.queued
	}
	asked.Demand.Prefer, asked.Demand.WaitForHosts = r.preferred(), !r.patient
	for again := askedAgain; ; again = min(2*again, askedRarely) {
		left := r.waitsUntil(since).Sub(workflow.Now(ctx))
		asked.Last = left <= 0
		wait := min(again, left)
		heard := r.tellFleet(ctx, fleet.Message{Asked: &asked})
		switch {
		case asked.Last:
			wait = lastAnswer
		case !heard:
			wait, again = min(left, fleetComes), askedAgain
		}
		g, ok, err := r.granted(ctx, asked, wait)
		switch {
		case err != nil:
			return nil, err
		case ok && g.Refusal != "":
			why := fmt.Sprintf("%s could not be placed: %s", listed(names(r.spec.TaskList())), g.Refusal)
			if r.spec.Barriers == spec.BarriersLocal {
				why += " (barriers: local)"
			}
			return nil, temporal.NewNonRetryableApplicationError(why, spec.ErrPlacement, nil)
		case ok:
			return g.Places, nil
		case asked.Last:
			return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf(
				"no host has joined the fleet of queue %s: start one with `clusterrun worker`", r.queue), spec.ErrPlacement, nil)
		}
	}
}

const (
	// askedAgain is how long a run waits before it asks again for the first time, and
	// askedRarely between later times.
	askedAgain, askedRarely = 30 * time.Second, 10 * time.Minute
	// lastAnswer is how long a fleet may take to answer a run that waits no longer.
	lastAnswer = 10 * time.Second
	// fleetComes is how soon a run asks again where there is no fleet yet.
	fleetComes = time.Second
)

// waitsUntil returns when a run that began to wait then gives up.
func (r *clusterRun) waitsUntil(since time.Time) time.Time {
	if r.patient {
		return since.Add(tenYears)
	}
	return since.Add(r.spec.PlacementTimeout.Std())
}

// granted waits for the answer to a question, no longer than that.
func (r *clusterRun) granted(ctx workflow.Context, asked fleet.Asked, wait time.Duration) (g fleet.Grant, ok bool, err error) {
	until := workflow.Now(ctx).Add(wait)
	for {
		left := until.Sub(workflow.Now(ctx))
		if left <= 0 {
			return g, false, nil
		}
		woken, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
			Timeout: left, TimerOptions: workflow.TimerOptions{Summary: "asks the fleet again"},
		}, func() bool { return len(r.answers) > 0 })
		if err != nil || !woken {
			return g, false, err
		}
		a := r.answers[0]
		r.answers = r.answers[1:]
		switch {
		case a.Return != nil && a.Return.Run == asked.Run && a.Return.Generation == asked.Generation:
			r.giveUp(ctx, asked.Generation)
		case a.Grant != nil && a.Grant.Run == asked.Run && a.Grant.Generation == asked.Generation && a.Grant.Try == asked.Try:
			return *a.Grant, true, nil
		}
	}
}

// listen takes what the fleet says, until the run ends. That of an earlier run of the same
// ID is for nobody.
func (r *clusterRun) listen(ctx workflow.Context) {
	answers := workflow.GetSignalChannel(ctx, spec.SignalFleet)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var a fleet.Answer
			answers.Receive(ctx, &a)
			if a.Move != nil && a.Move.Run == r.inFleet(ctx) {
				r.move(ctx, *a.Move)
				continue
			}
			r.answers = append(r.answers, a)
		}
	})
}

// move has a group leave a host that drains, with its next generation.
func (r *clusterRun) move(ctx workflow.Context, m fleet.Move) {
	r.draining[m.Host] = true
	if r.spec.RestartScope != spec.RestartScopeGroup {
		return
	}
	for _, t := range r.spec.TaskList() {
		if h := r.placed[t.Name()]; h != nil && h.name == m.Host && r.launches[t.Name()] != nil {
			// In scope "group" the others are started again with it.
			r.events.Send(ctx, request{event: lifecycle.RestartTasks{TaskRequest: spec.TaskRequest{Tasks: []string{t.Name()}}}})
			return
		}
	}
}

// giveUp gives back what earlier generations hold: another run may wait for it that has
// what this one waits for.
func (r *clusterRun) giveUp(ctx workflow.Context, generation int) {
	r.unreserve(ctx, r.hosts, generation)
	for _, h := range r.hosts {
		if h.name != "" {
			r.tellFleet(ctx, fleet.Message{Freed: &fleet.Freed{Run: r.inFleet(ctx), Host: h.name}})
		}
	}
}

// hostsAt returns the hosts of a grant with their tasks, which are those of the generation.
func (r *clusterRun) hostsAt(places []fleet.Place) []*host {
	tasks := r.spec.TaskList()
	placed := 0
	hosts := make([]*host, len(places))
	for i, at := range places {
		h := &host{name: at.Host, queue: spec.InstanceQueue(r.queue, at.Host, at.Instance), groups: []int{i}, devices: at.Devices}
		for _, ranks := range at.Ranks {
			h.tasks = append(h.tasks, tasks[ranks.First:ranks.End]...)
		}
		hosts[i] = h
		placed += len(h.tasks)
	}
	r.sized = r.spec.Sized(placed)
	return hosts
}

// reserveAll reserves all hosts of the run. What a host refuses for want of room is no
// error: another may have it.
func (r *clusterRun) reserveAll(ctx workflow.Context, p placement) (*fleet.Refused, error) {
	futures := make([]future[hostapi.ReserveOutput], len(r.hosts))
	asking, giveUp := workflow.WithCancel(ctx)
	var sending pace
	for i, h := range r.hosts {
		if err := sending.await(ctx, r.specBytes); err != nil {
			return nil, err
		}
		futures[i] = call(shipping(reservingAt(asking, h.queue, reserveSummary(h, p.generation)), r.spec), hostapi.Host.Reserve, r.reserveInput(ctx, p, h, h.groups[0]))
		sending.started = append(sending.started, futures[i])
	}
	onRefusal(ctx, futures, giveUp)
	var refused *fleet.Refused
	var failure error
	for i, h := range r.hosts {
		out, err := futures[i].get(ctx)
		switch {
		case err == nil:
			r.reserved(h, out)
		case isInvalid(err) || ctx.Err() != nil:
			if err := r.placementError(h, err); failure == nil || isInvalid(err) {
				failure = err
			}
		case refused == nil:
			refused = &fleet.Refused{Host: h.name, Reason: refusal(h, err)}
		}
	}
	return refused, failure
}

// refusal returns why a host has not taken its tasks.
func refusal(h *host, err error) string {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return fmt.Sprintf("host %s did not answer within %s", h.name, spec.Duration(reserveWait))
	}
	return reasonOf(err)
}

// unreserve has hosts give back what they have reserved for a generation, or still have of
// an earlier one. One that does not answer has it until the run ends.
func (r *clusterRun) unreserve(ctx workflow.Context, hosts []*host, generation int) {
	futures := make([]future[hostapi.None], len(hosts))
	for i, h := range hosts {
		futures[i] = call(askingFirst(ctx, h.queue, "give back what is reserved"), hostapi.Host.Unreserve,
			hostapi.Group{Run: r.began, Generation: generation})
	}
	for i, f := range futures {
		if _, err := f.get(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("a host keeps what it has reserved", "host", hosts[i].name, "error", err)
		}
	}
}

// left returns those of the hosts before that the group has left and has not lost.
func (r *clusterRun) left(before []*host) []*host {
	return slices.DeleteFunc(slices.Clone(before), func(h *host) bool {
		return h.queue == "" || r.lost[h.queue] || slices.ContainsFunc(r.hosts, func(now *host) bool { return now.queue == h.queue })
	})
}

// inFleet returns the run as its fleet knows it.
func (r *clusterRun) inFleet(ctx workflow.Context) fleet.Run {
	return fleet.Run{WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, RunID: r.began}
}

// preferred returns the names of the hosts that the group had and has not lost.
func (r *clusterRun) preferred() []string {
	var hosts []string
	for _, h := range slices.Concat(r.hosts, r.former) {
		if h.name != "" && !r.lost[h.queue] && !r.draining[h.name] && !slices.Contains(hosts, h.name) {
			hosts = append(hosts, h.name)
		}
	}
	return hosts
}

// tellFleet reports whether there is a fleet to hear it.
func (r *clusterRun) tellFleet(ctx workflow.Context, m fleet.Message) bool {
	err := workflow.SignalExternalWorkflow(ctx, spec.FleetID(r.queue), "", spec.SignalFleet, m).Get(ctx, nil)
	return err == nil
}

// leaveFleet tells the fleet that the run holds nothing any more.
func (r *clusterRun) leaveFleet(ctx workflow.Context) {
	if !spec.IsPrivateQueue(r.queue) {
		r.tellFleet(ctx, fleet.Message{Freed: &fleet.Freed{Run: r.inFleet(ctx)}})
	}
}
