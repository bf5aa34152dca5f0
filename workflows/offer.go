package workflows

import (
	"cmp"
	"errors"
	"slices"
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
	// maxAsked is the number of hosts that are asked for a promise at a time, and denyTakes limits
	// how long they may take to answer. Each try asks different hosts.
	maxAsked, denyTakes = 3, 3 * time.Second
)

// offers offers a task to its host until the launch is over or the host is given up. Package lease
// implements the rules. The server retries the first offer, and each one after a task's restart,
// unless its heartbeats stop, because only the workflow knows how to react.
func (c Carrier) offers(ctx workflow.Context, in hostapi.RunTaskInput, summary string, offered func(id string)) (spec.Exit, error) {
	b := lease.Bounds(*c.Bounds)
	id := spec.TaskActivityID(in.Task, in.Generation, in.Launch)
	loss := lease.NewLoss(b, workflow.Now(ctx))
	in.Bounds = c.Bounds
	wait, attempts, number := b.Passed(), int32(0), 0
	for n := 0; ; n++ {
		in.Offer = workflow.Now(ctx).UnixMilli()
		offered(spec.RetryActivityID(id, n))
		options := c.options(spec.RetryActivityID(id, n), summary)
		options.ScheduleToStartTimeout = wait
		options.RetryPolicy.MaximumAttempts = attempts
		options.RetryPolicy.NonRetryableErrorTypes = []string{heartbeatTimedOut}
		exit, err := call(workflow.WithActivityOptions(ctx, options), hostapi.Host.RunTask, in).get(ctx)
		number = max(number, lastNumber(err))
		if attempts == 1 && isNotTaken(err) {
			err = &silentError{err, loss.LastHeard(), number}
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
				if err := c.awaitHost(ctx, loss, n, in); err != nil {
					return exit, &silentError{err, loss.LastHeard(), number}
				}
				now = workflow.Now(ctx)
			case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
				if attempts == 0 { // an earlier attempt may have been accepted
					loss.Heard(now.Add(-wait))
					err = &silentError{err, loss.LastHeard(), number}
				}
				if c.promiseOf(ctx, loss, n, in); ctx.Err() != nil {
					return exit, &silentError{ctx.Err(), loss.LastHeard(), number}
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

// awaitHost returns once a silent host answers, or fails once none of the task's processes can be
// alive. Otherwise the server could hand an offer to the open poll of a host that has lost power,
// and the offer would count as accepted until heartbeats are missed.
func (c Carrier) awaitHost(ctx workflow.Context, loss *lease.Loss, n int, in hostapi.RunTaskInput) error {
	for ; ; n++ {
		if c.answers(ctx, loss.Wait(workflow.Now(ctx))) {
			return nil
		}
		if ctx.Err() == nil {
			c.promiseOf(ctx, loss, n, in)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case loss.Lost(workflow.Now(ctx)):
			return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		}
	}
}

// answers reports whether the host answers within the given time. A group's tasks share one
// question.
func (c Carrier) answers(ctx workflow.Context, within time.Duration) bool {
	a := c.asking
	if a == nil {
		a = &asking{}
	}
	q := a.host
	if q != nil {
		_ = workflow.Await(ctx, func() bool { return q.over })
		return q.answered && ctx.Err() == nil
	}
	q = &question{}
	a.host = q
	f := workflow.ExecuteActivity(answering(ctx, c.Queue, within, "check whether "+markdown.Name(c.Host)+" has returned", c.options("", "").HeartbeatTimeout), hostapi.MethodName(hostapi.Host.Answer))
	q.answered = !temporal.IsTimeoutError(f.Get(ctx, nil))
	q.over, a.host = true, nil
	return q.answered && ctx.Err() == nil
}

// silentError stops a task's offers if its host has not accepted the last one.
type silentError struct {
	error
	// heard is the last time that the server could have granted a lease.
	heard time.Time
	// number is the number of the last process in the host's heartbeats, or 0.
	number int
}

func (e *silentError) Unwrap() error { return e.error }

// isNotTaken reports whether err means that the host did not accept the last attempt of an offer.
func isNotTaken(err error) bool {
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
	}
	cancelled, ok := errors.AsType[*temporal.CanceledError](err)
	var details string
	return ok && cancelled.HasDetails() && cancelled.Details(&details) == nil && details == notStarted
}

// notStarted is in the error details of an activity that the server canceled before a worker took
// it.
const notStarted = "ACTIVITY_ID_NOT_STARTED"

// heartbeatTimedOut is the type of a heartbeat timeout in a retry policy.
const heartbeatTimedOut = "TemporalTimeout:Heartbeat"

// asking lets a group's tasks share questions, because witnesses could not answer hundreds of them
// in time.
type asking struct {
	next *question // to witnesses
	busy bool
	host *question // to the group's host; may be nil
}

type question struct {
	tasks    []string
	losses   []*lease.Loss
	over     bool
	answered bool
}

// promiseOf requests a promise for one task, and for all tasks in its group that wait for a
// promise.
func (c Carrier) promiseOf(ctx workflow.Context, loss *lease.Loss, n int, in hostapi.RunTaskInput) {
	a := c.asking
	if a == nil {
		c.promise(ctx, []*lease.Loss{loss}, n, in.Generation, in.Run, []string{in.Task})
		return
	}
	first := a.next == nil
	if first {
		a.next = &question{}
	}
	q := a.next
	q.tasks, q.losses = append(q.tasks, in.Task), append(q.losses, loss)
	if !first {
		_ = workflow.Await(ctx, func() bool { return q.over }) // the caller checks ctx
		return
	}
	err := workflow.Await(ctx, func() bool { return !a.busy })
	a.next = nil
	if err == nil {
		a.busy = true
		c.promise(ctx, q.losses, n, in.Generation, in.Run, q.tasks)
		a.busy = false
	}
	q.over = true
}

// promise requests that other hosts deny the tasks, and passes the first promise to losses. Each
// try uses different hosts than the previous one.
func (c Carrier) promise(ctx workflow.Context, losses []*lease.Loss, n, generation int, run string, tasks []string) {
	in := hostapi.DenyInput{
		Group: spec.Group{Run: run, Generation: generation}, Tasks: tasks, Offer: workflow.Now(ctx).UnixMilli(),
	}
	selector, promised, open := workflow.NewSelector(ctx), false, 0
	for i := range min(maxAsked, len(c.Others)) {
		f := call(denying(ctx, c.Others[(n*maxAsked+i)%len(c.Others)], "what "+markdown.Name(c.Host)+" may do"), hostapi.Host.Deny, in)
		open++
		selector.AddFuture(f.Future, func(workflow.Future) {
			open--
			if out, err := f.get(ctx); err == nil {
				promised = true
				for _, loss := range losses {
					loss.Promised(workflow.Now(ctx), out.Quiet)
				}
			}
		})
	}
	for open > 0 && !promised {
		selector.Select(ctx)
	}
}

// settled returns when nothing of the last generation lives on the host, either because the host
// reports it or because all leases on the host have expired.
func (pl *placer) settled(ctx workflow.Context, h *host, tasks []string) error {
	c, generation := pl.carrierOn(h), pl.machine.Generation()-1
	loss := lease.NewLoss(lease.Bounds(*pl.bounds), cmp.Or(pl.heard[h.Queue], workflow.Now(ctx)))
	asking, giveUp := workflow.WithCancel(ctx)
	defer giveUp()
	answer := call(settling(asking, h.Queue, lease.Bounds(*pl.bounds).LongPassed(), pl.spec, "what "+h.Name+" may have left"),
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
		if c.promise(ctx, []*lease.Loss{loss}, n, generation, pl.began, tasks); ctx.Err() != nil {
			return ctx.Err()
		}
		if loss.Lost(workflow.Now(ctx)) && !answer.IsReady() {
			return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
		}
		wait = loss.Wait(workflow.Now(ctx))
	}
}

// chooseWitnesses chooses the generation's witnesses if every host can be asked. It reports whether
// it chose them.
func (pl *placer) chooseWitnesses() bool {
	_, _, ok := pl.spec.TwoBounds(len(pl.placed))
	if !ok || slices.ContainsFunc(pl.hosts, func(h *host) bool { return h.out.Witness == nil }) {
		return false
	}
	for i, h := range pl.hosts {
		h.Witness = lease.IsWitness(i, len(pl.hosts))
	}
	return true
}

// witnessesOf returns h's witnesses for the server, starting with the hosts after h.
func (pl *placer) witnessesOf(h *host) []*host {
	i := slices.Index(pl.hosts, h)
	others := slices.Concat(pl.hosts[i+1:], pl.hosts[:max(i, 0)])
	return slices.DeleteFunc(others, func(o *host) bool { return !o.Witness })
}
