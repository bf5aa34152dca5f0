package activities

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// stopOf returns the signal and grace for stopping a task. Values of a request override the spec's
// values for the task's type.
func (p *plan) stopOf(task, signal string, grace *time.Duration) (supervisor.Stop, error) {
	t, _ := p.task(task) // an unknown task gets the spec's defaults
	name, g := p.Spec.StopOf(t)
	if signal != "" {
		name = signal
	}
	if grace != nil {
		g = *grace
	}
	n, err := spec.SignalNumber(name)
	return supervisor.Stop{Signal: n, Grace: g}, err
}

// byStop groups a request's tasks by signal and grace, in their order.
func (s *stopper) byStop(p *plan, q spec.TaskRequest) (order []supervisor.Stop, groups map[supervisor.Stop][]string, err error) {
	groups = map[supervisor.Stop][]string{}
	for _, task := range q.Tasks {
		signal, grace := s.gate.mayStop(p, task, q)
		how, err := p.stopOf(task, signal, grace)
		if err != nil {
			return nil, nil, err
		}
		if groups[how] == nil {
			order = append(order, how)
		}
		groups[how] = append(groups[how], task)
	}
	return order, groups, nil
}

// stopTasks stops tasks of the plan's generation, each with its type's signal and grace.
func (s *stopper) stopTasks(ctx context.Context, p *plan, q spec.TaskRequest, reason supervisor.Reason) (out spec.RequestAnswer, err error) {
	order, groups, err := s.byStop(p, q)
	if err != nil {
		return out, err
	}
	detail := ""
	if reason == supervisor.ReasonSilence {
		detail = silenceText(p.Spec)
	}
	for _, how := range order {
		reply, err := s.Supervisor.Stop(ctx, supervisor.StopRequest{
			Run: p.Run, Tasks: groups[how], Generation: p.Generation,
			Signal: how.Signal, Grace: how.Grace, Reason: reason, Detail: detail,
		})
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, reply.Tasks...)
	}
	return out, nil
}

// withUnreached adds the tasks that a request did not reach to its answer's problems.
func withUnreached(answer spec.RequestAnswer, asked []string) spec.RequestAnswer {
	for _, task := range asked {
		if !slices.Contains(answer.Tasks, task) {
			answer.Problems = append(answer.Problems, spec.TaskProblem{
				Task: task, Message: task + " has no process at present, so nothing was done; try again once it has been restarted",
			})
		}
	}
	return answer
}

// stopProcesses stops the given processes, but not their successors, each with its type's signal
// and grace.
func (s *stopper) stopProcesses(ctx context.Context, p *plan, processes []supervisor.Process, reason supervisor.Reason) error {
	groups := map[supervisor.Stop][]supervisor.ProcessRef{}
	for _, q := range processes {
		how, err := p.stopOf(q.Key.Task, "", nil)
		if err != nil {
			return err
		}
		groups[how] = append(groups[how], q.Ref())
	}
	for how, refs := range groups {
		_, err := s.Supervisor.Stop(ctx, supervisor.StopRequest{
			Run: p.Run, Processes: refs, Signal: how.Signal, Grace: how.Grace, Reason: reason,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stops returns the signals and graces for stopping a run's remaining processes, by task type.
// Without a plan the spec is unknown, and defaults apply.
func (p *plan) stops() (supervisor.Stops, error) {
	stops := supervisor.Stops{Stop: supervisor.Stop{Signal: int(sigterm), Grace: defaultGrace}}
	if p == nil {
		return stops, nil
	}
	usual, err := p.stopOf("", "", nil)
	if err != nil {
		return stops, err
	}
	stops.Stop = usual
	for _, task := range slices.Concat(p.Tasks, slices.Collect(maps.Keys(p.Added))) {
		own, err := p.stopOf(task, "", nil)
		if err != nil {
			return stops, err
		}
		stops.Except(task, own)
	}
	return stops, nil
}

// restart stops a task's process that does not return from a call. The task then gets a new
// process, as if an operator had restarted it.
func (s *stopper) restart(ctx context.Context, run runkey.Run, task string) error {
	p, err := s.plans.get(run)
	if err != nil {
		return err
	}
	_, err = s.stopTasks(ctx, p, spec.TaskRequest{Tasks: []string{task}}, supervisor.ReasonRestart)
	return err
}

// TellStopping tells the run's tasks on this host whether they stop together.
func (h *Host) TellStopping(ctx context.Context, in hostapi.TellStoppingInput) (none hostapi.None, err error) {
	p, err := h.accept(ctx, in.Group, request{"tell", nil, ""})
	if p == nil {
		return none, err
	}
	_, err = h.services.Learn(p.Run, in.Stopping)
	return none, err
}
