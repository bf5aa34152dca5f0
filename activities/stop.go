package activities

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stopOf returns how the processes of a task are asked to end, with what a request says
// over what the spec says of its type.
func (p *plan) stopOf(task, signal string, grace *time.Duration) (int, time.Duration, error) {
	t, _ := p.task(task) // without one, what the spec says of all
	name, g := p.Spec.StopOf(t)
	if signal != "" {
		name = signal
	}
	if grace != nil {
		g = *grace
	}
	n, err := spec.SignalNumber(name)
	return n, g, err
}

// howToStop is the signal and grace of one request to the supervisor.
type howToStop struct {
	signal int
	grace  time.Duration
}

// byStop groups tasks of a request by how they are asked to end, in their order.
func (h *Host) byStop(p *plan, in ControlInput) (order []howToStop, groups map[howToStop][]string, err error) {
	groups = map[howToStop][]string{}
	for _, task := range in.Tasks {
		signal, grace := h.mayStop(p, task, in)
		n, g, err := p.stopOf(task, signal, grace)
		if err != nil {
			return nil, nil, err
		}
		how := howToStop{n, g}
		if groups[how] == nil {
			order = append(order, how)
		}
		groups[how] = append(groups[how], task)
	}
	return order, groups, nil
}

// stopTasks asks the processes of tasks to end, each as its type wants it.
func (h *Host) stopTasks(ctx context.Context, p *plan, in ControlInput, reason supervisor.Reason) (ControlOutput, error) {
	order, groups, err := h.byStop(p, in)
	if err != nil {
		return ControlOutput{}, err
	}
	var out ControlOutput
	for _, how := range order {
		reply, err := h.Supervisor.Stop(ctx, supervisor.StopRequest{
			Run: p.Run, Tasks: groups[how], Generation: in.Generation,
			Signal: how.signal, Grace: how.grace, Reason: reason,
		})
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, reply.Tasks...)
	}
	return out, nil
}

// stopProcesses asks these processes to end, each as its type wants it, and nobody who
// may have come after them.
func (h *Host) stopProcesses(ctx context.Context, p *plan, processes []supervisor.Process, reason supervisor.Reason) error {
	groups := map[howToStop][]supervisor.ProcessRef{}
	for _, q := range processes {
		n, grace, err := p.stopOf(q.Key.Task, "", nil)
		if err != nil {
			return err
		}
		how := howToStop{n, grace}
		groups[how] = append(groups[how], q.Ref())
	}
	for how, refs := range groups {
		_, err := h.Supervisor.Stop(ctx, supervisor.StopRequest{
			Run: p.Run, Processes: refs, Signal: how.signal, Grace: how.grace, Reason: reason,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stopOfRun returns how whatever is left of a run is asked to end.
func stopOfRun(s *spec.RunSpec) (int, time.Duration, error) {
	n, err := spec.SignalNumber(s.Stop.Signal)
	return n, s.Stop.Grace.Std(), err
}

// restart stops the process of a task that does not end a call, and has it started again
// like one that an operator restarts.
func (h *Host) restart(ctx context.Context, run runkey.Run, task string) error {
	p, err := h.plans.get(run)
	if err != nil {
		return err
	}
	_, err = h.stopTasks(ctx, p, ControlInput{Op: lifecycle.ControlRestart, Tasks: []string{task}, Generation: p.Generation}, supervisor.ReasonRestart)
	return err
}
