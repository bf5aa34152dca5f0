package activities

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	sigterm = unix.SIGTERM
	// defaultGrace is for runs whose spec is not known any more.
	defaultGrace = 30 * time.Second
	// reconcileEvery is how soon a run that ended behind our back is noticed.
	reconcileEvery = 2 * time.Second
	// reservationLapse is how long a reservation is kept that no task follows,
	// beyond the placement timeout: the answer of Reserve got lost, and the run
	// was placed elsewhere.
	reservationLapse = time.Minute
	// cutOff is how long a host without a server lets the processes of a run on
	// several hosts go on. The run gives the host up two minutes later, so that
	// by then nothing of it is left here. A run on one host has nowhere else to
	// be, and goes on without limit.
	cutOff = 5 * time.Minute
	// longSilence is longer than it takes to hear of the server where there are tasks,
	// and shorter than the queue of closures waits for a host worker.
	longSilence = 20 * time.Second
)

// Reconcile looks after the runs on this host that nobody holds a lease on,
// until ctx ends. Their processes go on as long as the run wants them: only one
// whose run is closed, or does not list the task's activity as pending any
// more, is stopped. A server that cannot be asked decides nothing.
func (h *Host) Reconcile(ctx context.Context) {
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	var looking sync.Map // of supervisor.RunKey
	for {
		for _, p := range h.plans.all() {
			// Each on its own: the processes of one may take their grace.
			if _, busy := looking.LoadOrStore(p.Run, true); busy {
				continue
			}
			go func() {
				defer looking.Delete(p.Run)
				if err := h.reconcile(ctx, p); err != nil && ctx.Err() == nil {
					h.Log.Debug("a run cannot be reconciled now", zap.String("run", p.Run.WorkflowID), zap.Error(err))
				}
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-h.nudge:
		case <-ticker.C:
		}
	}
}

func (h *Host) reconcile(ctx context.Context, p *plan) error {
	if p.Cluster.Hosts > 1 && h.silence() > cutOff {
		return h.stopCutOff(ctx, p)
	}
	if h.holdsAny(p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d, err := h.Server.DescribeWorkflowExecution(ctx, p.Run.WorkflowID, p.Run.RunID)
	h.heard(err)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return h.abandon(p, "the server does not know the run any more")
	case err != nil:
		return err
	case d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return h.abandon(p, "the run is closed")
	}
	return h.stopUnlisted(ctx, p, d)
}

// holdsAny spares the server: a run with a lease on one of its tasks hears of
// its end there. Each lease that ends has the run looked at again.
func (h *Host) holdsAny(p *plan) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.attached {
		if k.Run == p.Run && k.Generation == p.Generation {
			return true
		}
	}
	return false
}

// abandon releases a run that nobody will release any more.
func (h *Host) abandon(p *plan, why string) error {
	if !p.Released {
		h.Log.Info("stopping what is left of a run", zap.String("run", p.Run.WorkflowID), zap.String("why", why))
	}
	signal, grace, err := stopOfRun(p.Spec)
	if err != nil {
		signal, grace = int(sigterm), defaultGrace
	}
	// Its own time: processes may take their grace.
	ctx, cancel := context.WithTimeout(context.Background(), grace+time.Minute)
	defer cancel()
	_, err = h.Supervisor.Release(ctx, supervisor.ReleaseRequest{Run: p.Run, Signal: signal, Grace: grace})
	if err != nil {
		return err
	}
	h.endTasks(p.Run)
	h.forgetBarriers(ctx, p.Run)
	h.collectRest(ctx, p)
	if err := h.plans.drop(p.Run); err != nil {
		return err
	}
	if !p.Released {
		h.brokers.endAbandoned(ctx, p)
	}
	return nil
}

// awaited says that the run has an activity open on this host worker's own queue,
// or is not done placing its tasks.
func (h *Host) awaited(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	own := "/" + h.Name + "/" + h.Instance
	for _, a := range d.GetPendingActivities() {
		if name := a.GetActivityType().GetName(); name == spec.ActivityReserve || name == spec.ActivityPrepare ||
			strings.HasSuffix(a.GetActivityOptions().GetTaskQueue().GetName(), own) {
			return true
		}
	}
	return false
}

// heard notes an answer of the server, whatever it was. After a long silence queues of
// closures are told again who serves here: they may have given up this host.
func (h *Host) heard(err error) {
	var unavailable *serviceerror.Unavailable
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &unavailable) || status.Code(err) == codes.DeadlineExceeded {
		return
	}
	h.mu.Lock()
	before := h.lastHeard
	h.lastHeard = h.now()
	long := h.lastHeard.Sub(before) > longSilence
	h.mu.Unlock()
	if long {
		h.brokers.again()
	}
}

func (h *Host) silence() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().Sub(h.lastHeard)
}

// stopCutOff stops the processes of a run that will be given up, or is.
func (h *Host) stopCutOff(ctx context.Context, p *plan) error {
	signal, grace, err := stopOfRun(p.Spec)
	if err != nil {
		return err
	}
	reply, err := h.Supervisor.Stop(ctx, supervisor.StopRequest{
		Run: p.Run, Signal: signal, Grace: grace, Reason: supervisor.ReasonShutdown,
	})
	if len(reply.Tasks) > 0 {
		h.Log.Warn("cut off from the server: stopping processes of a run on several hosts", zap.String("run", p.Run.WorkflowID), zap.Strings("tasks", reply.Tasks))
	}
	return err
}

// stopUnlisted stops processes whose activity the open run does not list.
func (h *Host) stopUnlisted(ctx context.Context, p *plan, d *workflowservice.DescribeWorkflowExecutionResponse) error {
	reply, err := h.Supervisor.Processes(ctx, p.Run)
	if err != nil {
		return err
	}
	if len(reply.Processes) == 0 {
		if h.now().Sub(p.Reserved) > p.Spec.PlacementTimeout.Std()+reservationLapse && !h.awaited(d) {
			return h.abandon(p, "the reservation lapsed: the run has no task here")
		}
		return nil
	}
	listed := map[taskOfGeneration]bool{}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == spec.ActivityRunTask {
			listed[ofActivity(a.GetActivityId())] = true
		}
	}
	var unlisted []string
	for _, q := range reply.Processes {
		if q.Exit == nil && !listed[taskOfGeneration{q.Key.Task, q.Key.Generation}] && !h.isAttached(q.Key) {
			unlisted = append(unlisted, q.Key.Task)
		}
	}
	if len(unlisted) == 0 {
		return nil
	}
	h.Log.Info("stopping processes their run does not list", zap.Strings("tasks", unlisted))
	_, err = h.stopTasks(ctx, p, ControlInput{Tasks: unlisted}, supervisor.ReasonCollateral)
	return err
}
