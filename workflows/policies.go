package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// tenYears is for ever: the life of a task is bounded by the run's rules, not
	// by the server.
	tenYears = 10 * 365 * 24 * time.Hour
	// heartbeatTimeout is the silence of a host worker after which it is offered another
	// attempt. Its processes keep running.
	heartbeatTimeout = 20 * time.Second
	// crowdTimeout is the same for each of a crowd of tasks of a large run on one host: a
	// server with a database in a file takes some hundred heartbeats a second. One task beats
	// more often for its host.
	crowdTimeout = time.Minute
	crowd        = 32
	// crowds is the size of a run from which on the same holds for all its tasks.
	crowds = 2500
	// reserveTakes bounds one try at a reservation.
	reserveTakes = 20 * time.Second
	// reserveWait and reserveEach are for [reservesWithin], [preparesWithin] and [requesting].
	reserveWait, reserveEach = 30 * time.Second, 100 * time.Millisecond
	// answerTakes bounds one try of Answer.
	answerTakes = 2 * time.Second
	// shippingTakes bounds the transfer of a run's files to a host.
	shippingTakes = 30 * time.Minute
	// startCheckTakes bounds the check of a task before it is started. Commands wait 15 s
	// for the answer.
	startCheckTakes = 10 * time.Second
	// captureTakes bounds the capture of stacks, also if a host worker is away: a run that is
	// out of time must end.
	captureTakes = 10 * time.Second
	// releaseWait is the time in which a host must take up its release, and lostWait the same for
	// a host that was lost and that the group has left: nothing of the run lives there, and it
	// adds at most the exits of earlier processes.
	releaseWait, lostWait = time.Minute, 5 * time.Second
	// notifyTakes is the time for which a host tries to send a notice, since the end of the run waits
	// for it. notifyWait is the time in which a host must take it up before the next one is asked.
	notifyTakes = 30 * time.Second
	notifyWait  = 10 * time.Second
)

// activityOptions returns a context for an activity on a queue.
type activityOptions func(ctx workflow.Context, queue, summary string) workflow.Context

// shipping gives a reservation time to bring the run's files to the host. Heartbeats show
// whether the host is lost during the transfer.
func shipping(ctx workflow.Context, s *spec.RunSpec) workflow.Context {
	if !s.Ships() {
		return ctx
	}
	o := workflow.GetActivityOptions(ctx)
	o.ScheduleToStartTimeout, o.HeartbeatTimeout = o.ScheduleToCloseTimeout, heartbeatTimeout
	o.ScheduleToCloseTimeout += shippingTakes
	o.StartToCloseTimeout = shippingTakes
	return workflow.WithActivityOptions(ctx, o)
}

// placing is for Reserve and Prepare: any refusal is worth another try until the deadline.
func placing(ctx workflow.Context, queue string, deadline time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: deadline,
		// A worker that dies with it in hand must not cost the whole deadline; both
		// activities may be done again.
		StartToCloseTimeout: min(deadline, reserveTakes),
		RetryPolicy:         every(time.Second),
		Summary:             summary,
	})
}

// preparesWithin returns the time that the hosts have to take the cluster, even if the placement
// timeout is up.
func preparesWithin(hosts int) time.Duration {
	return 10*time.Second + time.Duration(hosts)*reserveEach
}

// reservesWithin returns the time in which each of the granted hosts must take up its reservation.
func reservesWithin(hosts int) time.Duration {
	return reserveWait + time.Duration(hosts)*reserveEach
}

// reservingAt is for Reserve on a host that the fleet has granted. A refusal goes back to the
// fleet, which knows another host or lets the run wait.
func reservingAt(ctx workflow.Context, queue string, hosts int, summary string) workflow.Context {
	retries := every(time.Second)
	retries.NonRetryableErrorTypes = []string{spec.ErrPlacement}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: reservesWithin(hosts),
		StartToCloseTimeout:    reserveTakes,
		RetryPolicy:            retries,
		Summary:                summary,
	})
}

// options are for RunTask. The retry policy restarts a task, and brings back the lease on a
// process after a host worker died. The host counts the restarts, because attempts count both.
//
// Only a host that must have stopped the process by now is given up: it may have answered a
// moment before the attempt was offered to it.
func (c Carrier) options(id, summary string) workflow.ActivityOptions {
	o := workflow.ActivityOptions{
		ActivityID:          id,
		TaskQueue:           c.Queue,
		StartToCloseTimeout: tenYears,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy:         every(time.Second),
		Summary:             summary,
	}
	if c.Crowd {
		o.HeartbeatTimeout = crowdTimeout
	}
	if c.GivenUp > 0 {
		// After a side was killed, the next one has the lease before the processes are stopped.
		o.HeartbeatTimeout = min(o.HeartbeatTimeout, c.StopAfter/2)
		o.ScheduleToStartTimeout = c.GivenUp
	}
	return o
}

// givenUpAfter returns the time after the last heartbeat of the host at which it is given up, or 0:
// the server offers a task once more a second after its heartbeats have timed out.
func (c Carrier) givenUpAfter() time.Duration {
	if c.GivenUp == 0 || c.Bounds != nil {
		return c.GivenUp
	}
	o := c.options("", "")
	return o.HeartbeatTimeout + time.Second + o.ScheduleToStartTimeout
}

// answering is for Answer, which a host that is back does at once: the server gives each try to a poll
// of the host, and it may have open polls of a host that is gone.
func answering(ctx workflow.Context, queue string, within time.Duration, summary string, unheard time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    min(answerTakes, within),
		ScheduleToCloseTimeout: within,
		HeartbeatTimeout:       unheard, // it sends none, and `status` shows since when the host is silent
		RetryPolicy:            every(time.Second),
		Summary:                summary,
	})
}

// denying is for Deny.
func denying(ctx workflow.Context, queue, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    denyTakes,
		ScheduleToCloseTimeout: denyTakes,
		RetryPolicy:            once(),
		Summary:                summary,
	})
}

// settling is for SettleTasks, which ends the processes that a host may still have of a
// generation. A host that does not answer has stopped them by itself when the time is up;
// without a time the run waits for it.
func settling(ctx workflow.Context, queue string, givenUp time.Duration, s *spec.RunSpec, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    s.LongestGrace() + 2*lifecycle.KillBound,
		ScheduleToCloseTimeout: givenUp,
		RetryPolicy:            every(time.Second),
		Summary:                summary,
	})
}

// requesting is for requests to tasks on that many hosts, which are short and useless if they come late.
func requesting(hosts int) activityOptions {
	return func(ctx workflow.Context, queue, summary string) workflow.Context {
		return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue:              queue,
			StartToCloseTimeout:    10 * time.Second,
			ScheduleToCloseTimeout: time.Minute + time.Duration(hosts)*reserveEach,
			RetryPolicy:            every(time.Second),
			Summary:                summary,
		})
	}
}

// askingFirst is for CheckStart and Unreserve, whose callers wait for the answer.
func askingFirst(ctx workflow.Context, queue, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    startCheckTakes,
		ScheduleToCloseTimeout: startCheckTakes,
		RetryPolicy:            every(time.Second),
		Summary:                summary,
	})
}

// telling is for TellStopping with the state of a stop together, which is useful for as long as
// the run lives: a host that is away receives it when it is back.
func telling(ctx workflow.Context, queue, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           queue,
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
		Summary: summary,
	})
}

// capturing is for CaptureStacks before a timeout's stop, which waits for it.
func capturing(ctx workflow.Context, queue, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    captureTakes,
		ScheduleToCloseTimeout: captureTakes,
		RetryPolicy:            once(),
		Summary:                summary,
	})
}

// releasing is for Release, which waits for processes to take their grace.
func releasing(ctx workflow.Context, queue string, wait time.Duration, s *spec.RunSpec, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToStartTimeout: wait,
		StartToCloseTimeout:    s.LongestGrace() + 2*time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: 5,
		},
		Summary: summary,
	})
}

// ending is for EndClosures, which waits for the queue to end.
func ending(ctx workflow.Context, queue string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: 30 * time.Second,
		RetryPolicy:            every(time.Second),
		Summary:                "end the call queue",
	})
}

// notifying is for Notify. others reports whether other hosts can be asked.
func notifying(ctx workflow.Context, queue string, others bool) workflow.Context {
	o := workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: notifyTakes,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
		Summary: "notify",
	}
	if others {
		o.ScheduleToStartTimeout = notifyWait
	}
	return workflow.WithActivityOptions(ctx, o)
}

// once is for activities whose failure another attempt cannot mend.
func once() *temporal.RetryPolicy { return &temporal.RetryPolicy{MaximumAttempts: 1} }

func every(d time.Duration) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: d, BackoffCoefficient: 1}
}
