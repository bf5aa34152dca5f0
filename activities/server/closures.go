package server

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Closures implements the activity that calls a queue's closures on a host.
type Closures struct {
	server  *Server
	brokers *taskservices.Brokers
}

// NewClosures returns Closures that use the host's brokers.
func NewClosures(s *Server, b *taskservices.Brokers) *Closures {
	return &Closures{server: s, brokers: b}
}

// batchBeats is the interval between a batch's heartbeats, firstBatchBeat the delay of the first
// one, and beatPatience the maximum time to wait for the server's answer. Most batches finish
// before the first heartbeat.
const batchBeats, firstBatchBeat, beatPatience = 2 * time.Second, 250 * time.Millisecond, 5 * time.Second

// RunClosures lets this host's tasks call closures. See [closure.Batch].
func (c *Closures) RunClosures(ctx context.Context, in closure.Batch) (closure.BatchResult, error) {
	broker := c.brokers.Serving(runkey.Run{
		Namespace: activity.GetInfo(ctx).Namespace, WorkflowID: in.Run.WorkflowID, RunID: in.Run.RunID,
	})
	if broker == nil {
		return closure.BatchResult{}, temporal.NewNonRetryableApplicationError("this host does not have tasks of the run, or no longer has any", "NotServed", nil)
	}
	return c.server.runBatch(ctx, broker, in, true)
}

func (s *Server) runBatch(ctx context.Context, b *closures.Broker, in closure.Batch, own bool) (closure.BatchResult, error) {
	// The activity's context is cancelled when a heartbeat fails, but an outage of a second must
	// not stop the batch.
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	go s.keep(ctx, held, release)
	out, err := b.Run(held, in, own)
	if err != nil {
		return out, temporal.NewApplicationErrorWithOptions("the host stops processing calls: "+err.Error(), "BatchEnded",
			temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign})
	}
	return out, nil
}

// keep sends heartbeats until a batch is over. It stops the batch if the queue no longer waits for
// it or if this host worker is stopping.
func (s *Server) keep(ctx, held context.Context, release context.CancelFunc) {
	defer release()
	token := activity.GetInfo(ctx).TaskToken
	beat := time.NewTimer(firstBatchBeat)
	defer beat.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-ctx.Done():
			return
		case <-activity.GetWorkerStopChannel(ctx):
			return
		case <-beat.C:
			beat.Reset(batchBeats)
		}
		beating, cancel := context.WithTimeout(held, beatPatience)
		err := s.RecordActivityHeartbeat(beating, token)
		cancel()
		if temporal.IsCanceledError(err) || IsGone(err) {
			return
		}
	}
}

// pollAgain is the time between attempts to start polling.
var pollAgain = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// PollClosures polls for a run's batches until stop is called. The server hands the batches to
// hosts with a free slot.
func (s *Server) PollClosures(run spec.RunRef, b *closures.Broker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for again := pollAgain; ; {
			w, err := s.batchWorker(run, b)
			if err == nil {
				err = w.Start()
			}
			if err == nil {
				<-ctx.Done()
				w.Stop()
				return
			}
			b.Log.Debug("cannot poll a run's batches yet; retrying", zap.Error(err))
			if again.Sleep(ctx) != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (s *Server) batchWorker(run spec.RunRef, b *closures.Broker) (worker.Worker, error) {
	client, err := s.connected()
	if err != nil {
		return nil, err
	}
	unused := func() worker.SlotSupplier {
		one, failed := worker.NewFixedSizeSlotSupplier(1)
		err = errors.Join(err, failed)
		return one
	}
	tuner, failed := worker.NewCompositeTuner(worker.CompositeTunerOptions{
		ActivitySlotSupplier: slots{b}, WorkflowSlotSupplier: unused(), LocalActivitySlotSupplier: unused(),
		NexusSlotSupplier: unused(), SessionActivitySlotSupplier: unused(),
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	w := worker.New(client, closure.TaskQueue(closure.QueueID(run.WorkflowID, run.RunID)), worker.Options{
		Tuner: tuner, DisableWorkflowWorker: true,
		MaxConcurrentActivityTaskPollers: 2, WorkerStopTimeout: stopPatience,
	})
	batch := func(ctx context.Context, in closure.Batch) (closure.BatchResult, error) {
		return s.runBatch(ctx, b, in, false)
	}
	w.RegisterActivityWithOptions(batch, activity.RegisterOptions{Name: closure.ActivityRunClosures})
	return w, nil
}

// stopPatience limits how long batches may return closures when the host worker stops.
const stopPatience = 2 * time.Second

// slots lets a worker poll while the serving processes have a free slot.
type slots struct{ broker *closures.Broker }

// ReserveSlot waits for a free slot.
func (s slots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	if err := s.broker.Reserve(ctx); err != nil {
		return nil, err
	}
	return &worker.SlotPermit{}, nil
}

// TryReserveSlot is for eager activities, which the queue's worker does not request.
func (slots) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed does nothing, because a poll already holds its slot.
func (slots) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot returns a slot.
func (s slots) ReleaseSlot(worker.SlotReleaseInfo) { s.broker.Release() }

// MaxSlots returns 0, which means unknown, because processes come and go.
func (slots) MaxSlots() int { return 0 }
