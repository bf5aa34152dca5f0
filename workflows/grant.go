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

// placeInFleet requests hosts from the fleet and reserves them for the tasks. If one host refuses,
// the others drop their reservations, and the request is repeated. The time that the run has waited
// counts from since.
func (pl *placer) placeInFleet(ctx workflow.Context, p placement, since time.Time) error {
	if pl.queued.IsZero() {
		pl.queued = since
	}
	demand := pl.demand(p)
	if hosts := pl.stay(); hosts != nil && !p.requeue {
		pl.hosts = hosts
		if refused, err := pl.reserveAll(ctx, p); refused == nil {
			return err
		}
		pl.unreserve(ctx, pl.hosts, p.generation)
	}
	for try := 0; ; try++ {
		places, err := pl.fleet.ask(ctx, p, demand, since, try)
		if err != nil {
			return err
		}
		pl.hosts = pl.hostsAt(places)
		for _, h := range pl.hosts {
			delete(pl.draining, h.Name) // the host accepts tasks again
		}
		refused, err := pl.reserveAll(ctx, p)
		if err != nil {
			return err
		}
		if refused == nil {
			workflow.Go(ctx, func(ctx workflow.Context) {
				pl.fleet.tellFleet(ctx, fleet.Message{Placed: &fleet.Placed{Run: pl.fleet.inFleet(ctx), Generation: p.generation}})
			})
			return nil
		}
		refused.Run, refused.Generation, refused.Try = pl.fleet.inFleet(ctx), p.generation, try
		pl.unreserve(ctx, pl.hosts, p.generation)
		pl.former, pl.hosts = append(pl.former, pl.hosts...), nil
		pl.fleet.tellFleet(ctx, fleet.Message{Refused: refused})
	}
}

// stay returns the last generation's hosts if they suffice and the group can stay on them.
func (pl *placer) stay() []*host {
	if pl.grows() {
		return nil
	}
	for _, h := range pl.hosts {
		if h.Queue == "" || pl.lost[h.Queue] || pl.draining[h.Name] {
			return nil
		}
	}
	return pl.hosts
}

// ask returns places for the tasks as soon as the fleet has enough. It repeats the request
// occasionally, because a fleet that was terminated has lost its list of waiting runs.
func (f *fleetTalk) ask(ctx workflow.Context, p placement, demand fleet.Demand, since time.Time, try int) ([]fleet.Place, error) {
	asked := fleet.Asked{Run: f.inFleet(ctx), Generation: p.generation, Try: try, Demand: demand, Since: since}
	if f.spec.IsElastic() || p.requeue {
		asked.Since = f.queued
	}
	asked.Demand.Prefer, asked.Demand.WaitForHosts = f.placer.preferred(), !f.patient
	for again := askedAgain; ; again = min(2*again, askedRarely) {
		left := f.waitsUntil(since).Sub(workflow.Now(ctx))
		asked.Last = left <= 0
		wait := min(again, left)
		heard := f.tellFleet(ctx, fleet.Message{Asked: &asked})
		switch {
		case asked.Last:
			wait = lastAnswer
		case !heard:
			wait, again = min(left, fleetComes), askedAgain
		}
		g, ok, err := f.granted(ctx, asked, wait)
		switch {
		case err != nil:
			return nil, err
		case ok && g.Refusal != "":
			why := fmt.Sprintf("%s could not be placed: %s", listed(names(f.spec.TaskList())), g.Refusal)
			if f.spec.Barriers == spec.BarriersLocal {
				why += " (barriers: local)"
			}
			return nil, temporal.NewNonRetryableApplicationError(why, spec.ErrPlacement, nil)
		case ok:
			return g.Places, nil
		case asked.Last:
			return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf(
				"queue %q has no hosts yet; start one with `clusterrun worker`", f.queue), spec.ErrPlacement, nil)
		}
	}
}

const (
	// askedAgain is the delay before a run first repeats its request for hosts, and askedRarely
	// the interval of later requests.
	askedAgain, askedRarely = 30 * time.Second, 10 * time.Minute
	// lastAnswer limits how long a run that gives up waits for the fleet's answer.
	lastAnswer = 10 * time.Second
	// fleetComes is the delay before a run repeats its request when the fleet does not exist yet.
	fleetComes = time.Second
)

// waitsUntil returns when a run that has waited since the given time gives up.
func (f *fleetTalk) waitsUntil(since time.Time) time.Time {
	if f.patient {
		return since.Add(tenYears)
	}
	return since.Add(f.spec.PlacementTimeout.Std())
}

// granted waits for the fleet's answer, for at most wait.
func (f *fleetTalk) granted(ctx workflow.Context, asked fleet.Asked, wait time.Duration) (g fleet.Grant, ok bool, err error) {
	until := workflow.Now(ctx).Add(wait)
	for {
		left := until.Sub(workflow.Now(ctx))
		if left <= 0 {
			return g, false, nil
		}
		woken, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
			Timeout: left, TimerOptions: workflow.TimerOptions{Summary: "request hosts again"},
		}, func() bool { return len(f.answers) > 0 })
		if err != nil || !woken {
			return g, false, err
		}
		a := f.answers[0]
		f.answers = f.answers[1:]
		switch {
		case a.Return != nil && a.Return.Run == asked.Run && a.Return.Generation == asked.Generation:
			f.giveUp(ctx, asked.Generation)
		case a.Grant != nil && a.Grant.Run == asked.Run && a.Grant.Generation == asked.Generation && a.Grant.Try == asked.Try:
			return *a.Grant, true, nil
		}
	}
}

// listen receives the fleet's answers until the run finishes. It drops answers for an earlier run
// with the same ID.
func (f *fleetTalk) listen(ctx workflow.Context) {
	answers := workflow.GetSignalChannel(ctx, spec.SignalFleet)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var a fleet.Answer
			answers.Receive(ctx, &a)
			if a.Move != nil && a.Move.Run == f.inFleet(ctx) {
				f.move(ctx, *a.Move)
				continue
			}
			f.answers = append(f.answers, a)
		}
	})
}

// move makes a run leave a draining host at the drain's deadline. Without a deadline, a group
// leaves with its next generation, which starts now.
func (f *fleetTalk) move(ctx workflow.Context, m fleet.Move) {
	f.draining[m.Host] = true
	if !m.Deadline.IsZero() {
		reason := fmt.Sprintf("host %s is draining", m.Host)
		if m.Reason != "" {
			reason += ": " + m.Reason
		}
		now := workflow.Now(ctx)
		f.events.Send(ctx, request{event: lifecycle.GiveNotice{
			From: spec.NoticeFromDrain, Reason: reason, At: now, Within: m.Deadline.Sub(now), Requeue: f.spec.Requeues(spec.RequeueOnPreemption),
		}})
		return
	}
	if f.spec.RestartScope != spec.RestartScopeGroup {
		return
	}
	for _, t := range f.spec.TaskList() {
		if h := f.placed[t.Name()]; h != nil && h.Name == m.Host && f.launches[t.Name()] != nil {
			// In scope "group" all other tasks restart as well.
			f.events.Send(ctx, request{event: lifecycle.RestartTasks{TaskRequest: spec.TaskRequest{Tasks: []string{t.Name()}}}})
			return
		}
	}
}

// giveUp drops the reservations of earlier generations. Otherwise two runs could wait for each
// other's hosts.
func (f *fleetTalk) giveUp(ctx workflow.Context, generation int) {
	f.placer.unreserve(ctx, f.hosts, generation)
	for _, h := range f.hosts {
		if h.Name != "" {
			f.tellFleet(ctx, fleet.Message{Freed: &fleet.Freed{Run: f.inFleet(ctx), Host: h.Name}})
		}
	}
}

// hostsAt returns a grant's hosts with their tasks.
func (pl *placer) hostsAt(places []fleet.Place) []*host {
	tasks := pl.spec.TaskList()
	placed := 0
	hosts := make([]*host, len(places))
	for i, at := range places {
		h := &host{HeldHost: HeldHost{Name: at.Host, Queue: spec.InstanceQueue(pl.queue, at.Host, at.Instance), Groups: []int{i}, Devices: at.Devices}}
		for _, ranks := range at.Ranks {
			h.tasks = append(h.tasks, tasks[ranks.First:ranks.End]...)
		}
		hosts[i] = h
		placed += len(h.tasks)
	}
	pl.sized = pl.spec.Sized(placed)
	return hosts
}

// reserveAll reserves all of the run's hosts. A full host's refusal is not an error, because
// another host may be free.
func (pl *placer) reserveAll(ctx workflow.Context, p placement) (*fleet.Refused, error) {
	shared, done, err := pl.share(ctx, "the spec", hostapi.ReserveInput{Spec: pl.sized})
	defer done()
	if err != nil {
		return nil, err
	}
	futures := make([]future[hostapi.ReserveOutput], len(pl.hosts))
	asking, giveUp := workflow.WithCancel(ctx)
	for i, h := range pl.hosts {
		futures[i] = call(shipping(reservingAt(asking, h.Queue, len(pl.hosts), reserveSummary(h, p.generation)), pl.spec), hostapi.Host.Reserve, pl.reserveInput(ctx, p, h, h.Groups[0], shared))
	}
	onRefusal(ctx, futures, giveUp)
	var refused *fleet.Refused
	var failure error
	for i, h := range pl.hosts {
		out, err := futures[i].get(ctx)
		switch {
		case err == nil:
			pl.reserved(h, out)
		case isInvalid(err) || ctx.Err() != nil:
			if err := pl.placementError(h, err); failure == nil || isInvalid(err) {
				failure = err
			}
		case refused == nil:
			refused = &fleet.Refused{Host: h.Name, Reason: refusal(h, len(pl.hosts), err)}
		}
	}
	return refused, failure
}

// refusal describes why a host has refused its tasks.
func refusal(h *host, hosts int, err error) string {
	if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return fmt.Sprintf("host %s did not answer within %s", h.Name, spec.Duration(reservesWithin(hosts)))
	}
	return reasonOf(err)
}

// unreserve makes hosts drop their reservations for a generation and earlier ones. A host that does
// not answer keeps its reservations until the run finishes.
func (pl *placer) unreserve(ctx workflow.Context, hosts []*host, generation int) {
	futures := make([]future[hostapi.None], len(hosts))
	for i, h := range hosts {
		futures[i] = call(askingFirst(ctx, h.Queue, "release reservations"), hostapi.Host.Unreserve,
			spec.Group{Run: pl.began, Generation: generation})
	}
	for i, f := range futures {
		if _, err := f.get(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("a host did not release its reservations", "host", hosts[i].Name, "error", err)
		}
	}
}

// left returns the hosts in before that the group no longer uses but has not lost.
func (pl *placer) left(before []*host) []*host {
	return slices.DeleteFunc(slices.Clone(before), func(h *host) bool {
		return h.Queue == "" || pl.lost[h.Queue] || slices.ContainsFunc(pl.hosts, func(now *host) bool { return now.Queue == h.Queue })
	})
}

// inFleet returns the run's identity in its fleet.
func (f *fleetTalk) inFleet(ctx workflow.Context) fleet.Run {
	return fleet.Run{WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, RunID: f.began}
}

// preferred returns the names of the hosts that the group still has.
func (pl *placer) preferred() []string {
	var hosts []string
	for _, h := range slices.Concat(pl.hosts, pl.former) {
		if h.Name != "" && !pl.lost[h.Queue] && !pl.draining[h.Name] && !slices.Contains(hosts, h.Name) {
			hosts = append(hosts, h.Name)
		}
	}
	return hosts
}

// tellFleet sends a message to the fleet, and reports whether the fleet exists.
func (f *fleetTalk) tellFleet(ctx workflow.Context, m fleet.Message) bool {
	err := workflow.SignalExternalWorkflow(ctx, spec.FleetID(f.queue), "", spec.SignalFleet, m).Get(ctx, nil)
	return err == nil
}

// leaveFleet reports to the fleet that the run no longer holds any hosts.
func (f *fleetTalk) leaveFleet(ctx workflow.Context) {
	if !spec.IsPrivateQueue(f.queue) {
		f.tellFleet(ctx, fleet.Message{Freed: &fleet.Freed{Run: f.inFleet(ctx)}})
	}
}
