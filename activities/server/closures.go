package server

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Closures has the activities by which a queue of closures gets them called on a host.
type Closures struct {
	server  *Server
	brokers *taskservices.Brokers
}

// NewClosures returns the activities of the host with those brokers.
func NewClosures(s *Server, b *taskservices.Brokers) *Closures {
	return &Closures{server: s, brokers: b}
}

// leaseBeats is the interval between the heartbeats of a lease, firstLeaseBeat the delay of the
// first one, and beatPatience the longest time to wait for the server's answer. Most leases end
// before the first heartbeat.
const leaseBeats, firstLeaseBeat, beatPatience = 2 * time.Second, 250 * time.Millisecond, 5 * time.Second

// RunClosures lets the tasks of this host call closures. See [closure.Lease].
func (c *Closures) RunClosures(ctx context.Context, in closure.Lease) (closure.LeaseResult, error) {
	broker := c.brokers.Serving(runOf(ctx, in.Run))
	if broker == nil {
		return closure.LeaseResult{}, temporal.NewNonRetryableApplicationError("this host has no tasks of the run, or no longer", closure.ErrNotServed, nil)
	}
	// The context of the activity ends when a heartbeat fails, but an outage of a second must
	// not end the lease.
	leased, release := context.WithCancelCause(context.WithoutCancel(ctx))
	defer release(nil)
	go c.keep(ctx, leased, broker, activity.GetInfo(ctx).TaskToken, release)
	out, err := broker.Lease(leased, in)
	if err != nil {
		return out, temporal.NewApplicationErrorWithOptions("the host stops processing calls: "+err.Error(), "LeaseEnded",
			temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign})
	}
	return out, nil
}

// keep sends heartbeats until a lease is over. It ends the lease when the queue no longer wants
// it or this host worker ends. If the queue has lost the lease, keep announces again that the
// host serves.
func (c *Closures) keep(ctx, leased context.Context, b *closures.Broker, token []byte, release context.CancelCauseFunc) {
	beat := time.NewTimer(firstLeaseBeat)
	defer beat.Stop()
	for {
		select {
		case <-leased.Done():
			return
		case <-ctx.Done():
			release(context.Cause(ctx))
			return
		case <-activity.GetWorkerStopChannel(ctx):
			release(errors.New("the host worker is being restarted"))
			return
		case <-beat.C:
			beat.Reset(leaseBeats)
		}
		beating, cancel := context.WithTimeout(leased, beatPatience)
		err := c.server.RecordActivityHeartbeat(beating, token)
		cancel()
		if temporal.IsCanceledError(err) || IsGone(err) {
			release(err)
			b.TellAgain()
			return
		}
	}
}

// CancelClosures cancels closures. See [closure.CancelLease]. A host worker that was just
// started may be called before its tasks and leases have returned.
func (c *Closures) CancelClosures(ctx context.Context, in closure.CancelLease) error {
	if b := c.brokers.Serving(runOf(ctx, in.Run)); b != nil {
		b.Cancel(in)
	}
	return nil
}

// ReleaseResources makes processes drop what they have built of resources that are no longer
// needed. See [closure.ReleasedResources].
func (c *Closures) ReleaseResources(ctx context.Context, in closure.ReleasedResources) error {
	if b := c.brokers.Known(runOf(ctx, in.Run)); b != nil {
		b.Release(in.Released)
	}
	return nil
}

// runOf returns the key of the run of a queue.
func runOf(ctx context.Context, run spec.RunRef) runkey.Run {
	return runkey.Run{Namespace: activity.GetInfo(ctx).Namespace, WorkflowID: run.WorkflowID, RunID: run.RunID}
}
