package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// tenYears means unlimited, because the run's rules bound a task's life, not the server.
	tenYears = 10 * 365 * 24 * time.Hour
	// heartbeatTimeout is how long a host worker may be silent before the server starts another
	// attempt. Its processes keep running.
	heartbeatTimeout = 20 * time.Second
	// crowdTimeout replaces heartbeatTimeout for a large run's tasks that share a host, because a
	// server with a file database handles only a few hundred heartbeats per second. One task on
	// each host heartbeats more often on the host's behalf.
	crowdTimeout = time.Minute
	crowd        = 32
	// crowds is the minimum run size for crowdTimeout to apply to all tasks.
	crowds = 2500
	// reserveTakes limits one try of a reservation.
	reserveTakes = 20 * time.Second
	// reserveWait and reserveEach are the fixed and per-host parts of [reservesWithin],
	// [preparesWithin] and [requesting].
	reserveWait, reserveEach = 30 * time.Second, 100 * time.Millisecond
	// answerTakes limits one try of Answer.
	answerTakes = 2 * time.Second
	// shippingTakes limits a file transfer to a host.
	shippingTakes = 30 * time.Minute
	// startCheckTakes limits the check before a task starts. It must be shorter than the 15 s that
	// commands wait for the answer.
	startCheckTakes = 10 * time.Second
	// captureTakes limits the capture of stacks even if a host worker is away, because a run that
	// is out of time must finish.
	captureTakes = 10 * time.Second
	// releaseWait limits how long a host may take to start its release. lostWait replaces it for a
	// lost host that the group has left, whose only contribution is how earlier processes exited.
	releaseWait, lostWait = time.Minute, 5 * time.Second
	// notifyTakes limits how long a host tries to send a notice, because the run waits for it.
	// notifyWait limits how long a host may take to start sending before the next host is asked.
	notifyTakes = 30 * time.Second
	notifyWait  = 10 * time.Second
)

// activityOptions returns a context with the options for an activity on a queue.
type activityOptions func(ctx workflow.Context, queue, summary string) workflow.Context

// shipping gives a reservation time to transfer the run's files to the host. Heartbeats show
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

// placing is for Reserve and Prepare. After any refusal, both are retried until the deadline.
func placing(ctx workflow.Context, queue string, deadline time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: deadline,
		// A worker that dies during the activity must not use up the whole deadline. Both
		// activities can safely be repeated.
		StartToCloseTimeout: min(deadline, reserveTakes),
		RetryPolicy:         every(time.Second),
		Summary:             summary,
	})
}

// preparesWithin returns how long the hosts may take to accept the cluster even if the placement
// timeout has expired.
func preparesWithin(hosts int) time.Duration {
	return 10*time.Second + time.Duration(hosts)*reserveEach
}

// reservesWithin limits how long each granted host may take to start its reservation.
func reservesWithin(hosts int) time.Duration {
	return reserveWait + time.Duration(hosts)*reserveEach
}

// reservingAt is for Reserve on a host that the fleet has granted. A refusal goes back to the
// fleet, which grants another host or makes the run wait.
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

// options are for RunTask. The retry policy restarts a task, and also recovers the lease on a
// process whose host worker died. The host counts the restarts, because an attempt can be either.
//
// A host is given up only once it must have stopped the process, since it may have answered just
// before the attempt was offered to it.
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
		// If a supervisor or host worker is killed, its successor gets the lease before the
		// processes are stopped.
		o.HeartbeatTimeout = min(o.HeartbeatTimeout, c.StopAfter/2)
		o.ScheduleToStartTimeout = c.GivenUp
	}
	return o
}

// givenUpAfter returns the time between a host's last heartbeat and the moment it is given up, or 0
// if it is never given up. The server offers a task again one second after its heartbeats time out.
func (c Carrier) givenUpAfter() time.Duration {
	if c.GivenUp == 0 || c.Bounds != nil {
		return c.GivenUp
	}
	o := c.options("", "")
	return o.HeartbeatTimeout + time.Second + o.ScheduleToStartTimeout
}

// answering is for Answer, which a host that returns answers immediately. The server hands each try
// to an open poll, which may belong to a host that is gone.
func answering(ctx workflow.Context, queue string, within time.Duration, summary string, unheard time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    min(answerTakes, within),
		ScheduleToCloseTimeout: within,
		HeartbeatTimeout:       unheard, // Answer does not send heartbeats, and `status` shows since when the host is silent
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

// settling is for SettleTasks, which kills the processes that a host may still run for a
// generation. Once givenUp has passed, a host that does not answer must have stopped them. If
// givenUp is 0, the run waits for the host.
func settling(ctx workflow.Context, queue string, givenUp time.Duration, s *spec.RunSpec, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    s.LongestGrace() + 2*lifecycle.KillBound,
		ScheduleToCloseTimeout: givenUp,
		RetryPolicy:            every(time.Second),
		Summary:                summary,
	})
}

// requesting is for requests to tasks on the given number of hosts. They are short, and useless if
// late.
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

// askingFirst is for CheckStart and Unreserve. Their callers wait for the answer.
func askingFirst(ctx workflow.Context, queue, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    startCheckTakes,
		ScheduleToCloseTimeout: startCheckTakes,
		RetryPolicy:            every(time.Second),
		Summary:                summary,
	})
}

// telling is for TellStopping. It is retried for as long as the run lives, so that a host that was
// away receives it on return.
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

// releasing is for Release, which waits while processes use their grace.
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

// ending is for EndClosures, which waits for the queue to close.
func ending(ctx workflow.Context, queue string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: 30 * time.Second,
		RetryPolicy:            every(time.Second),
		Summary:                "close the call queue",
	})
}

// notifying is for Notify. others reports whether other hosts can be tried.
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

// once is for activities that are pointless to retry.
func once() *temporal.RetryPolicy { return &temporal.RetryPolicy{MaximumAttempts: 1} }

func every(d time.Duration) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: d, BackoffCoefficient: 1}
}
