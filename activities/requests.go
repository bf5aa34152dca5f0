package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// request is a request to tasks, for the policy and the audit log.
type request struct {
	what string // tasks are the named tasks. An empty list means all tasks of the run.
	// tasks are the named tasks. If empty, the request is for all tasks of the run.
	tasks []string
	// ask is the question to the policy. It is empty for requests that stop processes, which are
	// always allowed because their sender can also end the run.
	ask policy.Ask
}

// accept returns the plan for a request that the policy allows, and logs it. The plan is nil if
// there is an error, or if this host no longer has that generation, so that the request does
// nothing.
func (h *Host) accept(ctx context.Context, g spec.Group, q request) (*plan, error) {
	p, err := h.planOf(ctx, g)
	if p == nil {
		return nil, err
	}
	if err := h.gate.allow(ctx, p, q); err != nil {
		return nil, err
	}
	return p, nil
}

// planOf returns a generation's plan, or nil if this host no longer has it.
func (h *Host) planOf(ctx context.Context, g spec.Group) (*plan, error) {
	p, err := h.plans.get(runOf(ctx, g.Run))
	switch {
	case errors.Is(err, errNoPlan), err == nil && (p.Released || p.Generation != g.Generation):
		return nil, nil
	}
	return p, err
}

// allow checks a request to a run's tasks against the policy, and records it in the audit log.
func (g *gate) allow(ctx context.Context, p *plan, q request) error {
	if g.Guard == nil {
		return nil
	}
	names := q.tasks
	if len(names) == 0 {
		names = slices.Concat(p.Tasks, slices.Collect(maps.Keys(p.Added)))
		if q.ask != "" {
			// The request reaches all of the run's processes, even if a process's task is no longer
			// in the plan.
			all, err := g.Supervisor.Processes(ctx, p.Run)
			if err != nil {
				return err
			}
			names = append(names, tasksOf(notEnded(all.Processes))...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	var entries []guard.Entry
	for _, name := range names {
		t, ok := p.task(name)
		e := guard.Entry{What: q.what, Task: name, Run: p.Run.WorkflowID, Execution: p.Run.RunID, Signers: p.signersOf(name)}
		if q.ask != "" {
			d := g.decide(p, t, q.ask)
			if !ok && g.Guard.HasPolicy() {
				d = policy.Decision{Reason: fmt.Sprintf("the run has no task %s on this host", name)}
			}
			if !d.Allowed {
				e.Asked = q.what
				return temporal.NewNonRetryableApplicationError(bounded(g.denied(p, e, d.Reason).Error()), spec.ErrInvalidRequest, nil)
			}
			e.Rule, e.User = d.Rule, d.User
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if err := g.Guard.Log(e); err != nil {
			if q.ask != "" {
				return err
			}
			g.Log.Error("could not write a request to the audit log", zap.Error(err), zap.String("task", e.Task))
		}
	}
	return nil
}

// noted logs a request about a whole run. The policy is not consulted.
func (g *gate) noted(run runkey.Run, what string) {
	err := g.Guard.Log(guard.Entry{What: what, Run: run.WorkflowID, Execution: run.RunID})
	if err != nil {
		g.Log.Error("could not write a request to the audit log", zap.Error(err), zap.String("run", run.WorkflowID))
	}
}

func notEnded(processes []supervisor.Process) []supervisor.Process {
	return slices.DeleteFunc(slices.Clone(processes), func(q supervisor.Process) bool { return q.Exit != nil })
}

// mayStop returns the signal and grace of a request that may be used for a task. The policy treats
// the signal like any other signal; a long grace would let a task outlive its stop.
func (g *gate) mayStop(p *plan, task string, q spec.TaskRequest) (string, *time.Duration) {
	grace := q.Grace.Pointer()
	if !g.Guard.HasPolicy() || q.Signal == "" && grace == nil {
		return q.Signal, grace
	}
	t, ok := p.task(task)
	if ok && g.decide(p, t, policy.AskSignal).Allowed {
		return q.Signal, grace
	}
	if _, most := p.Spec.StopOf(t); grace != nil && *grace > most {
		return "", nil
	}
	return "", grace
}

// mayServe returns an error if a run's tasks must not receive closures.
func (g *gate) mayServe(run runkey.Run, task string) error {
	if !g.Guard.HasPolicy() {
		return nil
	}
	p, err := g.plans.get(run)
	if err != nil {
		return err
	}
	t, ok := p.task(task)
	if !ok {
		return fmt.Errorf("the run has no task %s", task)
	}
	if d := g.decide(p, t, policy.AskClosures); !d.Allowed {
		return g.denied(p, guard.Entry{Asked: "closures", Task: task, Signers: p.signersOf(task)}, d.Reason)
	}
	return nil
}
