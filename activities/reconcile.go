package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

const (
	sigterm = unix.SIGTERM
	// defaultGrace is for runs whose spec is no longer known.
	defaultGrace = 30 * time.Second
	// reconcileEvery is how soon the host notices that a run has ended.
	reconcileEvery = 2 * time.Second
	// reservationLapse is how long a reservation without a task is kept beyond the placement
	// timeout: perhaps the answer of Reserve was lost, and the run was placed elsewhere.
	reservationLapse = time.Minute
	// longSilence is longer than a host with tasks usually waits for an answer of the server,
	// and shorter than the queue of closures waits for a host worker.
	longSilence = 20 * time.Second
)

// Reconcile starts to watch the runs on this host that have no lease, until [Host.Close]. A
// process is stopped only if its run is closed or does not list the task's activity as
// pending any more. A server that cannot be reached decides nothing.
func (h *Host) Reconcile() {
	h.group.Go(h.reconcileAll)
	if !h.Owned {
		h.group.Go(h.keepStore)
	}
	if h.Retention != nil {
		h.group.Go(h.pruneLogs)
	}
}

func (h *Host) reconcileAll(ctx context.Context) {
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	var looking sync.Map // of runkey.Run
	for {
		for _, p := range h.plans.all() {
			// Each run has its own goroutine: its processes may use up their grace.
			if _, busy := looking.LoadOrStore(p.Run, true); busy {
				continue
			}
			h.group.Go(func(ctx context.Context) {
				defer looking.Delete(p.Run)
				if err := h.reconcile(ctx, p); err != nil && ctx.Err() == nil {
					h.Log.Debug("a run cannot be reconciled now", zap.String("run", p.Run.WorkflowID), zap.Error(err))
				}
			})
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
	if h.holdsAny(p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// This comes before the server is asked: the answer does not list later starts.
	before, err := h.Supervisor.Processes(ctx, p.Run)
	if err != nil {
		return err
	}
	d, err := h.Server.DescribeRun(ctx, p.Run.WorkflowID, p.Run.RunID)
	h.heard(err)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		if err := h.knows(ctx, p); err != nil {
			return err
		}
		return h.abandon(p, "the server no longer knows the run", &workflowpb.WorkflowExecutionInfo{})
	case err != nil:
		return err
	case d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return h.abandon(p, "the run is closed", d.GetWorkflowExecutionInfo())
	case takingOver(d):
		return nil // the next round looks again
	}
	pending, err := h.pendingHere(ctx, d)
	if err != nil {
		return err
	}
	if err := h.stopUnlisted(ctx, p, before.Processes, pending); err != nil {
		return err
	}
	if hasLater(d, p.Generation) && !h.awaited(pending) && !slices.ContainsFunc(before.Processes, lives) {
		return h.leave(ctx, p)
	}
	return nil
}

// hasLater reports whether an open run has tasks of a later generation. All hosts of that
// generation have a plan for it by then.
func hasLater(d *workflowservice.DescribeWorkflowExecutionResponse, generation int) bool {
	for _, a := range d.GetPendingActivities() {
		if _, its, ok := spec.TaskOfActivity(a.GetActivityId()); ok && a.GetActivityType().GetName() == hostapi.Name(hostapi.Host.RunTask) && its > generation {
			return true
		}
	}
	return slices.ContainsFunc(d.GetPendingChildren(), func(c *workflowpb.PendingChildExecutionInfo) bool {
		return c.GetWorkflowTypeName() == spec.GroupWorkflowType && spec.GenerationOfGroup(c.GetWorkflowId()) > generation
	})
}

func lives(p supervisor.Process) bool { return p.Exit == nil }

// leave frees the slots of a run that continues without this host. How its processes ended is
// kept for the release.
func (h *Host) leave(ctx context.Context, p *plan) error {
	now, err := h.plans.get(p.Run)
	if err != nil || now.Generation != p.Generation || len(now.Tasks)+len(now.Added) == 0 {
		return err
	}
	h.Log.Info("a run continues without this host", zap.String("run", p.Run.WorkflowID), zap.Int("generation", p.Generation))
	return h.free(ctx, now)
}

// errNotBegun is returned if a group of the run has not started its activities yet. The next
// round looks again.
var errNotBegun = errors.New("a group of the run has not begun yet")

// pendingHere returns the pending activities of a run and of its groups on this host.
func (h *Host) pendingHere(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) ([]*workflowpb.PendingActivityInfo, error) {
	pending := d.GetPendingActivities()
	for _, c := range d.GetPendingChildren() {
		if c.GetWorkflowTypeName() != spec.GroupWorkflowType || spec.HostOfGroup(c.GetWorkflowId()) != h.Name {
			continue
		}
		if c.GetRunId() == "" {
			return nil, errNotBegun
		}
		group, err := h.Server.DescribeRun(ctx, c.GetWorkflowId(), c.GetRunId())
		if err != nil {
			return nil, err
		}
		if begins(group) {
			return nil, errNotBegun
		}
		pending = slices.Concat(pending, group.GetPendingActivities())
	}
	return pending, nil
}

// holdsAny reports whether a task of the run has a lease here. Such a run need not be looked
// up on the server: the lease learns of its end. After each end of a lease the run is checked
// again.
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

// abandon releases a run that nobody will release any more. closed describes its last
// execution, if the server knows it and it has ended; nil if the run is open.
func (h *Host) abandon(p *plan, why string, closed *workflowpb.WorkflowExecutionInfo) error {
	if !p.Released {
		h.Log.Info("stopping what is left of a run", zap.String("run", p.Run.WorkflowID), zap.String("why", why))
	}
	stops, _ := p.stops() // of those that are understood
	// It gets a context of its own: processes may use up their grace.
	ctx, cancel := context.WithTimeout(h.group.Context(), stops.Longest()+time.Minute)
	defer cancel()
	_, err := h.Supervisor.Release(ctx, supervisor.ReleaseRequest{Run: p.Run, Stops: stops})
	if err != nil {
		return err
	}
	h.services.Release(ctx, p.Run)
	h.collectRest(ctx, p)
	if err := h.free(ctx, p); err != nil {
		return err
	}
	if closed != nil {
		if err := h.noteEnd(p, closed); err != nil {
			return err
		}
	}
	if err := h.plans.drop(p.Run); err != nil {
		return err
	}
	if !p.Released {
		h.services.EndAbandoned(ctx, p.forServices())
	}
	return nil
}

// free frees the slots of a run that has not released the host itself, and tells the fleet.
// The plan stays until the fleet knows.
func (h *Host) free(ctx context.Context, p *plan) error {
	if p.Released || h.Fleet == nil {
		return nil
	}
	if err := h.unreserve(p.Run, p.Generation); err != nil {
		return err
	}
	return h.Fleet.Freed(ctx, fleet.Run{WorkflowID: p.Run.WorkflowID, RunID: p.Run.RunID})
}

// awaited reports whether the run has a pending activity on this host worker's own queue, or
// is still placing its tasks.
func (h *Host) awaited(pending []*workflowpb.PendingActivityInfo) bool {
	own := "/" + h.Name + "/" + h.Instance
	for _, a := range pending {
		if name := a.GetActivityType().GetName(); name == hostapi.Name(hostapi.Host.Reserve) || name == hostapi.Name(hostapi.Host.Prepare) ||
			strings.HasSuffix(a.GetActivityOptions().GetTaskQueue().GetName(), own) {
			return true
		}
	}
	return false
}

// heard records the result of a request to the server. After a long time without an answer
// the queues of closures are told again who serves here: they may have given up this host.
func (h *Host) heard(err error) {
	if !server.IsContact(err) && !server.IsGone(err) {
		return
	}
	h.mu.Lock()
	before := h.lastHeard
	h.lastHeard = h.now()
	long := h.lastHeard.Sub(before) > longSilence
	h.mu.Unlock()
	if long {
		h.services.Brokers().TellAgain()
	}
}

// stopUnlisted stops processes whose activity the open run does not list. The processes are
// older than the list.
func (h *Host) stopUnlisted(ctx context.Context, p *plan, processes []supervisor.Process, pending []*workflowpb.PendingActivityInfo) error {
	if len(processes) == 0 {
		now, err := h.plans.get(p.Run)
		if err != nil || now.Generation != p.Generation {
			return err // reserved again meanwhile, or released
		}
		if h.now().Sub(p.Reserved) > p.Spec.PlacementTimeout.Std()+reservationLapse && !h.awaited(pending) {
			return h.abandon(p, "the reservation lapsed: the run has no task here", nil)
		}
		return nil
	}
	type taskOfGeneration struct {
		task       string
		generation int
	}
	listed := map[taskOfGeneration]bool{}
	for _, a := range pending {
		if a.GetActivityType().GetName() == hostapi.Name(hostapi.Host.RunTask) {
			if task, generation, ok := spec.TaskOfActivity(a.GetActivityId()); ok {
				listed[taskOfGeneration{task, generation}] = true
			}
		}
	}
	var unlisted []supervisor.Process
	for _, q := range processes {
		if q.Exit == nil && !listed[taskOfGeneration{q.Key.Task, q.Key.Generation}] && !h.isAttached(q.Key) {
			unlisted = append(unlisted, q)
		}
	}
	if len(unlisted) == 0 {
		return nil
	}
	h.Log.Info("stopping processes their run does not list", zap.Strings("tasks", tasksOf(unlisted)))
	return h.stopProcesses(ctx, p, unlisted, supervisor.ReasonCollateral)
}

// begun is the minimal history length of an execution that has started the activities of its
// tasks, which it does in its first workflow task: the execution was started, and the task
// was scheduled, started and completed.
const begun = 4

// takingOver reports whether the execution continues a run and may not have taken over its
// tasks yet. The server may delay its first workflow task by a second.
func takingOver(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	info := d.GetWorkflowExecutionInfo()
	first := info.GetFirstRunId()
	return first != "" && first != info.GetExecution().GetRunId() && begins(d)
}

// begins reports whether an execution may not have completed its first workflow task.
func begins(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	return d.GetPendingWorkflowTask() != nil || d.GetWorkflowExecutionInfo().GetHistoryLength() < begun
}
