package activities

import (
	"context"
	"errors"
	"math"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// SettleTasks stops the processes that this host may still run for a generation or its
// predecessors, and returns once the processes are gone.
func (h *Host) SettleTasks(ctx context.Context, in hostapi.TasksInput) (spec.RequestAnswer, error) {
	run := runOf(ctx, in.Run)
	h.gate.noted(run, "settle")
	return h.stops.settle(ctx, run, in)
}

// settle makes sure that the given tasks have no living process on this host, in this generation or
// an earlier one, and that none is started. The run does not know how the tasks' processes exited,
// and is about to start the tasks elsewhere. An attempt that has not arrived yet is fenced off.
func (s *stopper) settle(ctx context.Context, run runkey.Run, in hostapi.TasksInput) (spec.RequestAnswer, error) {
	p, err := s.plans.get(run)
	if err != nil && !errors.Is(err, errNoPlan) {
		return spec.RequestAnswer{}, err
	}
	for _, task := range in.Tasks {
		_, err := s.Supervisor.Attach(ctx, supervisor.AttachRequest{
			Key:   runkey.Task{Run: run, Generation: in.Generation, Task: task},
			Fence: supervisor.Fence{Launch: math.MaxInt32},
		})
		if err != nil && !errors.Is(err, supervisor.ErrDamaged) {
			return spec.RequestAnswer{}, err
		}
	}
	all, err := s.Supervisor.Processes(ctx, run)
	if err != nil {
		return spec.RequestAnswer{}, err
	}
	var left []supervisor.Process
	for _, q := range all.Processes {
		if q.Exit == nil && q.Key.Generation <= in.Generation {
			left = append(left, q)
		}
	}
	if len(left) == 0 {
		return spec.RequestAnswer{}, nil
	}
	s.Log.Info("stopping processes that no longer belong to their run", zap.Strings("tasks", tasksOf(left)))
	if p != nil {
		err = s.stopProcesses(ctx, p, left, supervisor.ReasonCollateral)
	} else {
		_, err = s.Supervisor.Stop(ctx, supervisor.StopRequest{
			Run: run, Processes: refsOf(left), Signal: int(sigterm), Grace: defaultGrace, Reason: supervisor.ReasonCollateral,
		})
	}
	if err != nil {
		return spec.RequestAnswer{}, err
	}
	for _, q := range left {
		if _, err := s.Supervisor.Wait(ctx, q.Ref()); err != nil {
			return spec.RequestAnswer{}, err
		}
	}
	return spec.RequestAnswer{Tasks: tasksOf(left)}, nil
}
