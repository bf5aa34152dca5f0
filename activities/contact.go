package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// beatsInContact is how often a host tries to reach the server before it stops a process for
// lack of contact.
const beatsInContact = 4

// stopAfter returns how long a process of the run continues without contact; 0 is without
// limit.
func (p *plan) stopAfter() time.Duration { return p.Spec.StopAfter(p.Cluster.Hosts) }

// hurry shortens the time between two heartbeats, or the wait for an answer, if the run stops
// its processes sooner.
func (p *plan) hurry(d time.Duration) time.Duration {
	if after := p.stopAfter(); after > 0 {
		return min(d, after/beatsInContact)
	}
	return d
}

// contact returns the first contact of a process. If the process needs contact, the server
// must have answered for this very attempt a moment ago: an attempt that was frozen for a
// while may no longer be valid. The answer may be the one that delivered the attempt.
func (l *taskLease) contact() (supervisor.Contact, error) {
	after := l.plan.stopAfter()
	if after == 0 {
		return supervisor.Contact{}, nil
	}
	stop, err := l.plan.stopOf(l.key.Task, "", nil)
	if err != nil {
		return supervisor.Contact{}, err
	}
	if l.AskedAt != nil {
		if at := l.AskedAt(l.token); at > 0 && time.Duration(supervisor.BootNanos()-at) < after/2 {
			return supervisor.Contact{Until: at + after.Nanoseconds(), Signal: stop.Signal, Grace: stop.Grace}, nil
		}
	}
	// There is no process to report, but the details of an earlier one must be kept.
	var details []any
	if before := (spec.Heartbeat{}); l.resumed && activity.GetHeartbeatDetails(l.ctx, &before) == nil {
		details = append(details, before)
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.plan.hurry(beatPatience))
	defer cancel()
	sent := supervisor.BootNanos()
	switch err := l.Server.RecordActivityHeartbeat(ctx, l.token, details...); {
	case err == nil:
		return supervisor.Contact{Until: sent + after.Nanoseconds(), Signal: stop.Signal, Grace: stop.Grace}, nil
	case server.IsGone(err):
		return supervisor.Contact{}, errSuperseded
	case server.IsContact(err):
		return supervisor.Contact{}, retryAt("it is no longer started: "+err.Error(), "NotStarted", 0, nil)
	default:
		return supervisor.Contact{}, fmt.Errorf("%w: the Temporal server does not answer for it: %v", errAway, err)
	}
}

// inContact renews the contact of the task's process: the server has answered a heartbeat
// that was sent at that time of CLOCK_BOOTTIME.
func (l *taskLease) inContact(ctx context.Context, sent int64) {
	after := l.plan.stopAfter()
	if after == 0 {
		return
	}
	err := l.Supervisor.Renew(ctx, supervisor.RenewRequest{Key: l.key, Fence: l.fence, Until: sent + after.Nanoseconds()})
	if err != nil && ctx.Err() == nil {
		l.Log.Debug("the contact of a process is not renewed", zap.Stringer("task", l.key), zap.Error(err))
	}
}
