package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
)

// leaseBeats is how often a lease says that it is held, and firstLeaseBeat is after which time
// for the first time: with how many of its closures are being called, for people. Most end
// sooner than that.
const leaseBeats, firstLeaseBeat = 2 * time.Second, 250 * time.Millisecond

// RunClosures has the tasks of this host call closures. See [closure.Lease].
func (h *Host) RunClosures(ctx context.Context, in closure.Lease) (closure.LeaseResult, error) {
	info := activity.GetInfo(ctx)
	broker := h.brokers.served(servedKey{info.Namespace, in.Run.WorkflowID, in.Run.RunID})
	if broker == nil {
		return closure.LeaseResult{}, temporal.NewNonRetryableApplicationError("this host has no tasks of the run (any more)", closure.ErrNotServed, nil)
	}
	// The context of the activity ends when a heartbeat fails, and a server that is
	// away for a second is no reason to give the lease back.
	leased, release := context.WithCancelCause(context.WithoutCancel(ctx))
	defer release(nil)
	ids := make([]uint64, len(in.Closures))
	for i := range in.Closures {
		ids[i] = in.Closures[i].ID
	}
	executing := func() closure.LeaseBeat { return closure.LeaseBeat{Executing: broker.Executing(ids)} }
	go h.keepLease(ctx, leased, broker, info.TaskToken, executing, release)
	out, err := broker.Lease(leased, in)
	if err != nil {
		return out, temporal.NewApplicationErrorWithOptions("the host lets go of the lease: "+err.Error(), "LeaseEnded",
			temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign})
	}
	return out, nil
}

// keepLease beats until a lease is over, and ends it when the queue does not want it
// any more or this host worker ends. A queue that has lost it has to hear that there is
// somebody here.
func (h *Host) keepLease(ctx, leased context.Context, s *brokered, token []byte, how func() closure.LeaseBeat, release context.CancelCauseFunc) {
	beat := time.NewTimer(firstLeaseBeat)
	defer beat.Stop()
	for {
		select {
		case <-leased.Done():
			return
		case <-ctx.Done():
			release(context.Cause(ctx))
			return
		case <-beat.C:
			beat.Reset(leaseBeats)
		}
		beating, cancel := context.WithTimeout(leased, beatPatience)
		err := h.Server.RecordActivityHeartbeat(beating, token, how())
		cancel()
		if temporal.IsCanceledError(err) || isGone(err) {
			release(err)
			s.again()
			return
		}
	}
}

// CancelClosures has closures not be called any more. See [closure.CancelLease]. A host worker
// that was just started may hear of it before tasks and leases come back to it.
func (h *Host) CancelClosures(ctx context.Context, in closure.CancelLease) error {
	key := servedKey{activity.GetInfo(ctx).Namespace, in.Run.WorkflowID, in.Run.RunID}
	if s := h.brokers.served(key); s != nil {
		s.Cancel(in)
	}
	return nil
}

// ReleaseResources has processes drop what they have built of resources that nobody needs
// any more. See [closure.ReleasedResources].
func (h *Host) ReleaseResources(ctx context.Context, in closure.ReleasedResources) error {
	key := servedKey{activity.GetInfo(ctx).Namespace, in.Run.WorkflowID, in.Run.RunID}
	if s := h.brokers.known(key); s != nil {
		s.Release(in.Released)
	}
	return nil
}

// restartServing stops the process of a task that does not end a call, and has it
// started again like one that an operator restarts.
func (h *Host) restartServing(key servedKey, task string) {
	p := h.plans.served(key)
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := h.stopTasks(ctx, p, ControlInput{Op: lifecycle.ControlRestart, Tasks: []string{task}, Generation: p.Generation}, supervisor.ReasonRestart)
	if err != nil {
		h.Log.Warn("a process that does not end its call could not be restarted", zap.String("task", task), zap.Error(err))
	}
}
