package activities

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// awaitPredecessor waits until all processes of earlier executions with the same workflow ID are
// gone, because two executions of one job must not share a host. The reconciler stops the processes
// of closed runs.
func (r *reservations) awaitPredecessor(ctx context.Context, run runkey.Run) error {
	for {
		all, err := r.Supervisor.Processes(ctx, runkey.Run{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all.Processes, func(p supervisor.Process) bool {
			return p.Exit == nil && p.Key.Run.Namespace == run.Namespace &&
				p.Key.Run.WorkflowID == run.WorkflowID && p.Key.Run.RunID != run.RunID
		})
		if i < 0 {
			return nil
		}
		p := all.Processes[i]
		if _, err := r.Supervisor.Wait(ctx, supervisor.ProcessRef{Key: p.Key, Number: p.Number}); err != nil {
			return fmt.Errorf("wait for %s of the earlier run %s to end: %w", p.Key.Task, p.Key.Run.RunID, err)
		}
	}
}

// endOlder stops what remains of earlier generations of the run. A generation's activities are
// closed before the next generation is placed, so these processes are orphans of a lease that was
// lost while the group was being stopped.
func (r *reservations) endOlder(ctx context.Context, run runkey.Run, in hostapi.ReserveInput) error {
	if in.Generation == 0 {
		return nil
	}
	reply, err := r.Supervisor.Processes(ctx, run)
	if err != nil {
		return err
	}
	older := slices.DeleteFunc(reply.Processes, func(p supervisor.Process) bool {
		return p.Exit != nil || p.Key.Generation >= in.Generation
	})
	if len(older) == 0 {
		return nil
	}
	p, err := r.plans.get(run)
	if err != nil {
		p = &plan{Run: run, Spec: in.Spec}
	}
	r.Log.Info("stopping processes left by an earlier start", zap.Strings("tasks", tasksOf(older)))
	if err := r.stops.stopProcesses(ctx, p, older, supervisor.ReasonCollateral); err != nil {
		return err
	}
	for _, p := range older {
		if _, err := r.Supervisor.Wait(ctx, supervisor.ProcessRef{Key: p.Key, Number: p.Number}); err != nil {
			return fmt.Errorf("wait for %s of start %d to end: %w", p.Key.Task, p.Key.Generation, err)
		}
	}
	return nil
}

// checkUnused refuses a generation that already had processes on this host: its workflow was reset
// to an earlier point and would repeat completed work. The run's first execution was not reset, but
// may repeat a workflow task that it ran tasks within.
func (r *reservations) checkUnused(ctx context.Context, run runkey.Run, generation int) error {
	if p, err := r.plans.get(run); err != nil || p.Generation != generation || activity.GetInfo(ctx).WorkflowExecution.RunID == run.RunID {
		return nil //nolint:nilerr // nothing was reserved for it
	}
	reply, err := r.Supervisor.Processes(ctx, run)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(reply.Processes, func(p supervisor.Process) bool { return p.Key.Generation == generation }) {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"its workflow was reset to a point before its tasks were placed, but they already had processes on host %s; start a new run", r.Name),
			spec.ErrInvalidRunSpec, nil)
	}
	return nil
}

func tasksOf(processes []supervisor.Process) []string {
	return list.Of(processes, func(p supervisor.Process) string { return p.Key.Task })
}

func refsOf(processes []supervisor.Process) []supervisor.ProcessRef {
	return list.Of(processes, func(p supervisor.Process) supervisor.ProcessRef { return p.Ref() })
}
