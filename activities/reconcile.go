package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

const (
	sigterm = unix.SIGTERM
	// defaultGrace is the grace for runs whose spec is no longer known.
	defaultGrace = 30 * time.Second
	// reconcileEvery is the time between checks whether runs have ended.
	reconcileEvery = 2 * time.Second
	// describedAtMost limits the requests per second that all of a run's hosts together send about
	// that run, because each answer lists the activities of all hosts.
	describedAtMost = 50
	// A reservation without a task lapses reservationLapse after the placement timeout, because
	// Reserve's answer may have been lost and the run placed elsewhere.
	reservationLapse = time.Minute
)

// Reconcile starts watching this host's runs without a lease, until [Host.Close]. A process is
// stopped only if its run is closed or no longer lists the task's activity as pending. Nothing is
// stopped while the server cannot be reached.
func (h *Host) Reconcile() {
	h.group.Go(h.watch.takeOver)
	h.group.Go(h.watch.reconcileAll)
	if !h.Owned {
		h.group.Go(h.watch.keepStore)
	}
	if h.Retention != nil {
		h.group.Go(h.watch.pruneLogs)
	}
}

func (r *reconciler) reconcileAll(ctx context.Context) {
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	var looking sync.Map // of runkey.Run
	for {
		for _, p := range r.plans.all() {
			// Each run has its own goroutine, because a run's processes may use up their grace.
			if _, busy := looking.LoadOrStore(p.Run, true); busy {
				continue
			}
			r.group.Go(func(ctx context.Context) {
				defer looking.Delete(p.Run)
				if err := r.reconcile(ctx, p); err != nil && ctx.Err() == nil {
					r.Log.Debug("cannot compare a run with the server at present", zap.String("run", p.Run.WorkflowID), zap.Error(err))
				}
				if !r.leases.holdsAny(p) {
					_ = retry.Sleep(ctx, restOf(p))
				}
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-r.leases.nudge:
		case <-ticker.C:
		}
	}
}

// restOf returns the time, in addition to [reconcileEvery], between two checks of a run. If the
// host does not have the cluster yet, it assumes the same number of tasks on each host.
func restOf(p *plan) time.Duration {
	hosts := p.Cluster.Hosts
	if here := len(p.Tasks); hosts == 0 && here > 0 {
		hosts = len(p.Spec.TaskList()) / here
	}
	return max(0, time.Duration(hosts)*time.Second/describedAtMost-reconcileEvery)
}

func (r *reconciler) reconcile(ctx context.Context, p *plan) error {
	if r.leases.holdsAny(p) {
		return nil
	}
	if p.Released {
		if kept, err := r.keepStuck(p.Run); kept || err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// This must come before asking the server, because the answer does not list later starts.
	before, err := r.Supervisor.Processes(ctx, p.Run)
	if err != nil {
		return err
	}
	d, err := r.Server.DescribeRun(ctx, p.Run.WorkflowID, p.Run.RunID)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		if err := r.knows(ctx, p); err != nil {
			return err
		}
		return r.abandon(p, "the server no longer has the run", &workflowpb.WorkflowExecutionInfo{})
	case err != nil:
		return err
	case !workflowstatus.IsOpen(d.GetWorkflowExecutionInfo().GetStatus()):
		return r.abandon(p, "the run is closed", d.GetWorkflowExecutionInfo())
	case begins(d), len(p.Witnesses) > 0 && isOffering(d):
		return nil // the next round looks again
	}
	pending, err := r.pendingHere(ctx, d)
	if err != nil {
		return err
	}
	if err := r.stopUnlisted(ctx, p, before.Processes, pending); err != nil {
		return err
	}
	if hasLater(d, p.Generation) && !r.awaited(pending) && !slices.ContainsFunc(before.Processes, lives) {
		return r.leave(ctx, p)
	}
	return nil
}

// hasLater reports whether an open run has tasks of a later generation. All hosts of such a
// generation already have a plan for it.
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

// leave frees the slots of a run that continues without this host. Its processes' exits are kept
// for the release.
func (r *reconciler) leave(ctx context.Context, p *plan) error {
	now, err := r.plans.get(p.Run)
	if err != nil || now.Generation != p.Generation || len(now.Tasks)+len(now.Added) == 0 {
		return err
	}
	r.Log.Info("a run continues without this host", zap.String("run", p.Run.WorkflowID), zap.Int("generation", p.Generation))
	return r.free(ctx, now)
}

// errNotBegun is returned if a group may not have started its activities yet, or may be about to
// reoffer some of them. The next round repeats the check.
var errNotBegun = errors.New("a group of the run has not started yet")

// pendingHere returns the pending activities of a run and its groups on this host.
func (r *reconciler) pendingHere(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) ([]*workflowpb.PendingActivityInfo, error) {
	pending := d.GetPendingActivities()
	for _, c := range d.GetPendingChildren() {
		if c.GetWorkflowTypeName() != spec.GroupWorkflowType || spec.HostOfGroup(c.GetWorkflowId()) != r.Name {
			continue
		}
		if c.GetRunId() == "" {
			return nil, errNotBegun
		}
		group, err := r.Server.DescribeRun(ctx, c.GetWorkflowId(), c.GetRunId())
		if err != nil {
			return nil, err
		}
		if begins(group) || isOffering(group) {
			return nil, errNotBegun
		}
		pending = slices.Concat(pending, group.GetPendingActivities())
	}
	return pending, nil
}

// abandon releases a run that will never be released normally. closed describes its last execution,
// if it is closed and known to the server.
func (r *reconciler) abandon(p *plan, why string, closed *workflowpb.WorkflowExecutionInfo) error {
	if !p.Released {
		r.Log.Info("stopping leftover processes of a run", zap.String("run", p.Run.WorkflowID), zap.String("why", why))
	}
	stops, _ := p.stops() // only the stops that are understood
	// A separate context is needed because processes may use up their grace.
	ctx, cancel := context.WithTimeout(r.group.Context(), stops.Longest()+time.Minute)
	defer cancel()
	reply, err := r.Supervisor.Release(ctx, supervisor.ReleaseRequest{Run: p.Run, Stops: stops})
	if err != nil {
		return err
	}
	if err := r.reservations.noteStuck(p.Run, reply.Processes); err != nil && !errors.Is(err, errNoPlan) {
		return err
	}
	r.services.Release(ctx, p.Run)
	r.filterLines(ctx, p)
	if err := r.free(ctx, p); err != nil {
		return err
	}
	if err := r.noteEnd(p, closed); err != nil {
		return err
	}
	if kept, err := r.keepStuck(p.Run); kept || err != nil {
		if kept && !p.Released {
			r.services.ReleaseClosures(p.Run)
		}
		return err
	}
	if err := r.plans.drop(p.Run); err != nil {
		return err
	}
	r.witnesses.Forget(p.Run)
	if !p.Released {
		r.services.ReleaseClosures(p.Run)
	}
	return nil
}

// free frees the slots of a run that has not released the host itself, and notifies the fleet. The
// plan stays until the fleet has been notified.
func (r *reconciler) free(ctx context.Context, p *plan) error {
	if p.Released {
		return nil
	}
	if err := r.reservations.unreserve(ctx, p.Run, p.Generation); err != nil || r.Fleet == nil {
		return err
	}
	return r.Fleet.Freed(ctx, fleet.Run{WorkflowID: p.Run.WorkflowID, RunID: p.Run.RunID})
}

// awaited reports whether the run has a pending activity on this host worker's own queue, or is
// still placing its tasks.
func (r *reconciler) awaited(pending []*workflowpb.PendingActivityInfo) bool {
	own := "/" + r.Name + "/" + r.Instance
	for _, a := range pending {
		if name := a.GetActivityType().GetName(); name == hostapi.Name(hostapi.Host.Reserve) || name == hostapi.Name(hostapi.Host.Prepare) ||
			strings.HasSuffix(a.GetActivityOptions().GetTaskQueue().GetName(), own) {
			return true
		}
	}
	return false
}

// stopUnlisted stops processes whose activities the open run does not list. The processes must be
// older than that list.
func (r *reconciler) stopUnlisted(ctx context.Context, p *plan, processes []supervisor.Process, pending []*workflowpb.PendingActivityInfo) error {
	if len(processes) == 0 {
		now, err := r.plans.get(p.Run)
		if err != nil || now.Generation != p.Generation {
			return err // reserved again since, or released
		}
		if r.now().Sub(p.Reserved) > p.Spec.PlacementTimeout.Std()+reservationLapse && !r.awaited(pending) {
			return r.leave(ctx, p) // the run may return, because the server may have been away
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
		if q.Exit == nil && !listed[taskOfGeneration{q.Key.Task, q.Key.Generation}] && !r.leases.isAttached(q.Key) {
			unlisted = append(unlisted, q)
		}
	}
	if len(unlisted) == 0 {
		return nil
	}
	r.Log.Info("stopping processes that their run does not list", zap.Strings("tasks", tasksOf(unlisted)))
	return r.stops.stopProcesses(ctx, p, unlisted, supervisor.ReasonCollateral)
}

// begun is the minimum history length of an execution that has started its tasks' activities. An
// execution starts them in its first workflow task, so the history has four events: execution
// started, and task scheduled, started and completed.
const begun = 4

// isOffering reports whether an execution may be about to offer tasks again after their last offer
// was closed. Between two offers, it sends requests to the host and then to other hosts.
func isOffering(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	return d.GetPendingWorkflowTask() != nil || slices.ContainsFunc(d.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
		name := a.GetActivityType().GetName()
		return name == hostapi.Name(hostapi.Host.Deny) || name == hostapi.MethodName(hostapi.Host.Answer)
	})
}

// begins reports whether an execution may not have completed its first workflow task. It may then
// run tasks within that workflow task, or not have taken over its predecessor's tasks yet.
func begins(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	return d.GetPendingWorkflowTask() != nil || d.GetWorkflowExecutionInfo().GetHistoryLength() < begun
}

// errStranger is returned if the run is not on this server.
var errStranger = errors.New("this is a different Temporal server, or its database is new; the run's processes continue")

// knows returns nil if the run was placed from this server. If the run was placed from another
// server, this server's not knowing the run proves nothing.
func (r *reconciler) knows(ctx context.Context, p *plan) error {
	if p.Server == "" {
		return nil // the plan is from a version that did not record its server
	}
	id, err := r.Server.Identity(ctx, p.Run.Namespace)
	if err != nil || id == p.Server {
		return err
	}
	if _, told := r.strangers.LoadOrStore(p.Run, id); !told {
		r.Log.Warn(errStranger.Error(), zap.String("run", p.Run.WorkflowID))
	}
	return errStranger
}
