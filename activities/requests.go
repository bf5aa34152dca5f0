package activities

import (
	"context"
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
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checkRequest checks a request to the tasks of a run against the policy, and logs it to the
// audit log. Requests that end processes are always allowed: whoever can send them can also
// end the run.
func (h *Host) checkRequest(ctx context.Context, p *plan, in ControlInput) error {
	ask, known := asks[in.Op]
	if h.Guard == nil || !known {
		return nil
	}
	names := in.Tasks
	if len(names) == 0 {
		names = slices.Concat(p.Tasks, slices.Collect(maps.Keys(p.Added)))
		if ask != "" {
			// It reaches every process of the run, even of a task that the plan no longer
			// has.
			all, err := h.Supervisor.Processes(ctx, p.Run)
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
		e := guard.Entry{What: string(in.Op), Task: name, Run: p.Run.WorkflowID, Execution: p.Run.RunID, Signers: p.signersOf(name)}
		if ask != "" {
			d := h.decide(p, t, ask)
			if !ok && h.Guard.HasPolicy() {
				d = policy.Decision{Reason: fmt.Sprintf("the run has no task %s here", name)}
			}
			if !d.Allowed {
				e.Asked = string(in.Op)
				return temporal.NewNonRetryableApplicationError(bounded(h.denied(p, e, d.Reason).Error()), spec.ErrInvalidRequest, nil)
			}
			e.Rule, e.User = d.Rule, d.User
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if err := h.Guard.Log(e); err != nil {
			if ask != "" {
				return err
			}
			h.Log.Error("a request is not in the audit log", zap.Error(err), zap.String("task", e.Task))
		}
	}
	return nil
}

// asks are the requests that are logged, and the question to the policy for each.
var asks = map[lifecycle.ControlOp]policy.Ask{
	lifecycle.ControlRestart:   policy.AskRestart,
	lifecycle.ControlSignal:    policy.AskSignal,
	lifecycle.ControlStacks:    policy.AskStacks,
	lifecycle.ControlTerminate: "",
	lifecycle.ControlSilence:   "",
	lifecycle.ControlTell:      "",
	lifecycle.ControlSeal:      "",
}

// noted logs a request about a run as a whole. The policy is not asked about it.
func (h *Host) noted(run runkey.Run, in ControlInput) {
	err := h.Guard.Log(guard.Entry{What: string(in.Op), Run: run.WorkflowID, Execution: run.RunID})
	if err != nil {
		h.Log.Error("a request is not in the audit log", zap.Error(err), zap.String("run", run.WorkflowID))
	}
}

// notEnded returns the processes that have not ended.
func notEnded(processes []supervisor.Process) []supervisor.Process {
	return slices.DeleteFunc(slices.Clone(processes), func(q supervisor.Process) bool { return q.Exit != nil })
}

// checkLeft returns an error if a run has not left this host: a process that the policy has
// allowed must stay known while it lives.
func (h *Host) checkLeft(ctx context.Context, run runkey.Run, generation int) error {
	if !h.Guard.HasPolicy() {
		return nil
	}
	all, err := h.Supervisor.Processes(ctx, run)
	if err != nil {
		return err
	}
	for _, q := range notEnded(all.Processes) {
		if q.Key.Generation <= generation {
			return temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %s still runs here", h.Name, q.Key.Task), spec.ErrInvalidRequest, nil)
		}
	}
	return nil
}

// mayStop returns the signal and the grace of a request that may be used for a task. The
// policy treats the signal like any other signal; a long grace would let a task outlive its
// stop.
func (h *Host) mayStop(p *plan, task string, in ControlInput) (string, *time.Duration) {
	if !h.Guard.HasPolicy() || in.Signal == "" && in.Grace == nil {
		return in.Signal, in.Grace
	}
	t, ok := p.task(task)
	if ok && h.decide(p, t, policy.AskSignal).Allowed {
		return in.Signal, in.Grace
	}
	if _, most := p.Spec.StopOf(t); in.Grace != nil && *in.Grace > most {
		return "", nil
	}
	return "", in.Grace
}

// mayServe returns an error if the tasks of a run must not be given closures.
func (h *Host) mayServe(run runkey.Run, task string) error {
	if !h.Guard.HasPolicy() {
		return nil
	}
	p, err := h.plans.get(run)
	if err != nil {
		return err
	}
	t, ok := p.task(task)
	if !ok {
		return fmt.Errorf("the run has no task %s", task)
	}
	if d := h.decide(p, t, policy.AskClosures); !d.Allowed {
		return h.denied(p, guard.Entry{Asked: "closures", Task: task, Signers: p.signersOf(task)}, d.Reason)
	}
	return nil
}
