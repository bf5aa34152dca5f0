package workflows

import (
	"cmp"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

const (
	// maxWitnessed is the most hosts of a run that extend each other's leases: each of them has
	// the services of all the others.
	maxWitnessed = 32
	// mostAsked is the number of hosts that are asked for a promise at once, and denyTakes the
	// time that they have. The next try asks others.
	mostAsked, denyTakes = 3, 3 * time.Second
)

// offers offers a task to its host until the launch has ended, or its host is given up. Package
// lease has the rules. The first offer, and each after a restart of the task, is attempted again
// by the server, unless its heartbeats stop: only the workflow knows what follows then.
func (c Carrier) offers(ctx workflow.Context, in hostapi.RunTaskInput, summary string, offered func(id string)) (spec.Exit, error) {
	b := lease.Bounds(*c.Bounds)
	id := spec.TaskActivityID(in.Task, in.Generation, in.Launch)
	loss := lease.NewLoss(b, workflow.Now(ctx))
	in.Bounds = c.Bounds
	wait, attempts := b.Passed(), int32(0)
	for n := 0; ; n++ {
		in.Offer = workflow.Now(ctx).UnixMilli()
		offered(spec.OfferID(id, n))
		options := c.options(spec.OfferID(id, n), summary)
		options.ScheduleToStartTimeout = wait
		options.RetryPolicy.MaximumAttempts = attempts
		options.RetryPolicy.NonRetryableErrorTypes = []string{heartbeatTimedOut}
		exit, err := call(workflow.WithActivityOptions(ctx, options), hostapi.Host.RunTask, in).get(ctx)
		if attempts == 1 && isNotTaken(err) {
			err = &silentError{err, loss.LastHeard()}
		}
		if ctx.Err() != nil || err == nil {
			return exit, err
		}
		now := workflow.Now(ctx)
		var timeout *temporal.TimeoutError
		var app *temporal.ApplicationError
		switch {
		case errors.As(err, &timeout):
			in.Resumed = in.Resumed || timeout.HasLastHeartbeatDetails()
			switch timeout.TimeoutType() {
			case enumspb.TIMEOUT_TYPE_HEARTBEAT:
				loss.Heard(now.Add(-options.HeartbeatTimeout))
			case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
				if attempts == 0 { // an earlier attempt may have been taken
					loss.Heard(now.Add(-wait))
					err = &silentError{err, loss.LastHeard()}
				}
				if c.promise(ctx, loss, n, in.Generation, in.Run, []string{in.Task}); ctx.Err() != nil {
					return exit, &silentError{ctx.Err(), loss.LastHeard()}
				}
				if now = workflow.Now(ctx); loss.Lost(now) {
					return exit, err
				}
			default:
				return exit, err
			}
			wait, attempts = loss.Wait(now), 1
		case attempts == 1 && errors.As(err, &app) && !app.NonRetryable():
			in.Resumed = in.Resumed || app.Type() == spec.ErrRestart
			if err := workflow.Sleep(ctx, cmp.Or(app.NextRetryDelay(), time.Second)); err != nil {
				return exit, err
			}
			loss.Heard(workflow.Now(ctx))
			wait, attempts = b.Passed(), 0
		default:
			return exit, err
		}
	}
}

// silentError ends the offers of a task whose host has not taken the last of them.
type silentError struct {
	error
	// heard is the last time at which the server can have given a lease.
	heard time.Time
}

func (e *silentError) Unwrap() error { return e.error }

// isNotTaken reports whether an offer that ended like this was not taken by its host, in its last
// attempt.
func isNotTaken(err error) bool {
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
	}
	cancelled, ok := errors.AsType[*temporal.CanceledError](err)
	var details string
	return ok && cancelled.HasDetails() && cancelled.Details(&details) == nil && details == notStarted
}

// notStarted is in the details of an activity that the server has cancelled while no worker had it.
const notStarted = "ACTIVITY_ID_NOT_STARTED"

// heartbeatTimedOut is the type of a heartbeat timeout in a retry policy.
const heartbeatTimedOut = "TemporalTimeout:Heartbeat"

// promise asks other hosts to deny the tasks, and tells loss of the first that does. The nth try
// asks others than the one before.
func (c Carrier) promise(ctx workflow.Context, loss *lease.Loss, n, generation int, run string, tasks []string) {
	in := hostapi.DenyInput{
		Group: spec.Group{Run: run, Generation: generation}, Tasks: tasks, Offer: workflow.Now(ctx).UnixMilli(),
	}
	selector, promised, open := workflow.NewSelector(ctx), false, 0
	for i := range min(mostAsked, len(c.Others)) {
		f := call(denying(ctx, c.Others[(n*mostAsked+i)%len(c.Others)], "what "+markdown.Name(c.Host)+" may do"), hostapi.Host.Deny, in)
		open++
		selector.AddFuture(f.Future, func(workflow.Future) {
			open--
			if out, err := f.get(ctx); err == nil {
				promised = true
				loss.Promised(workflow.Now(ctx), out.Quiet)
			}
		})
	}
	for open > 0 && !promised {
		selector.Select(ctx)
	}
}

// settled returns when nothing of the last generation lives on the host: it says so, or
// all leases there have ended.
func (pl *placer) settled(ctx workflow.Context, h *host, tasks []string) error {
	c, generation := pl.carrierOn(h), pl.machine.Generation()-1
	loss := lease.NewLoss(lease.Bounds(*pl.bounds), cmp.Or(pl.heard[h.queue], workflow.Now(ctx)))
	asking, giveUp := workflow.WithCancel(ctx)
	defer giveUp()
	answer := call(settling(asking, h.queue, lease.Bounds(*pl.bounds).LongPassed(), pl.spec, "what "+h.name+" may have left"),
		hostapi.Host.SettleTasks, hostapi.TasksInput{Group: spec.Group{Run: pl.began, Generation: generation}, Tasks: tasks})
	wait := loss.FirstWait(workflow.Now(ctx))
	for n := 0; ; n++ {
		selector := workflow.NewSelector(ctx)
		waiting, stop := workflow.WithCancel(ctx)
		selector.AddFuture(answer.Future, func(workflow.Future) {})
		selector.AddFuture(workflow.NewTimer(waiting, wait), func(workflow.Future) {})
		selector.Select(ctx)
		stop()
		if answer.IsReady() {
			_, err := answer.get(ctx)
			return err
		}
		if c.promise(ctx, loss, n, generation, pl.began, tasks); ctx.Err() != nil {
			return ctx.Err()
		}
		if loss.Lost(workflow.Now(ctx)) && !answer.IsReady() {
			return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
		}
		wait = loss.Wait(workflow.Now(ctx))
	}
}

// witnesses returns the services by which the hosts of the generation ask each other about the
// server, or nil if they do not.
func (pl *placer) witnesses() (services []spec.HostService) {
	_, _, ok := pl.spec.TwoBounds(len(pl.placed))
	if !ok || len(pl.hosts) > maxWitnessed || len(pl.placed) > maxOwn {
		return nil
	}
	for _, h := range pl.hosts {
		if h.out.Witness == nil {
			return nil
		}
		services = append(services, *h.out.Witness)
	}
	return services
}

// others returns the queues of the other hosts of the generation, those after h first.
func (pl *placer) others(h *host) (queues []string) {
	for _, side := range []bool{false, true} {
		before := true
		for _, o := range pl.hosts {
			if o == h {
				before = false
			} else if before == side {
				queues = append(queues, o.queue)
			}
		}
	}
	return queues
}
