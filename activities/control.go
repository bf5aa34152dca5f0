package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// ControlInput is a short operation on the host of running tasks.
type ControlInput struct {
	// Run is as in [ReserveInput].
	Run   string              `json:"run,omitempty"`
	Op    lifecycle.ControlOp `json:"op"`
	Tasks []string            `json:"tasks"`
	// Generation is the generation that the request is meant for. A late request reaches no
	// process of the next one.
	Generation int            `json:"generation,omitempty"`
	Signal     string         `json:"signal,omitempty"`
	Grace      *time.Duration `json:"grace,omitempty"`
	// Start is the task that is to be started, if the operation checks that.
	Start *spec.Task `json:"start,omitempty"`
	// Stopping is the state that the operation tells the tasks.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
}

// ControlOutput names the tasks that had a process to reach.
type ControlOutput struct {
	Tasks []string `json:"tasks"`
	// Files are the paths of the captured stacks, by task.
	Files map[string]string `json:"files,omitempty"`
	// Stacks has the stacks of the main threads, by rank, in at most [stacktree.HostBytes].
	Stacks stacktree.Tree `json:"stacks,omitzero"`
}

// Control terminates, restarts or signals processes, captures their stacks, checks whether a
// task could be started, seals the run on this host, or tells its tasks that they stop
// together. The RunTask activities of the tasks stay open: they see the processes end and
// judge the ends.
func (h *Host) Control(ctx context.Context, in ControlInput) (ControlOutput, error) {
	run := runOf(ctx, in.Run)
	switch in.Op {
	case lifecycle.ControlSettle:
		h.noted(run, in)
		return h.settle(ctx, run, in)
	case lifecycle.ControlUnreserve:
		h.noted(run, in)
		if err := h.checkLeft(ctx, run, in.Generation); err != nil {
			return ControlOutput{}, err
		}
		return ControlOutput{}, h.unreserve(run, in.Generation)
	}
	p, err := h.plans.get(run)
	if errors.Is(err, errNoPlan) || err == nil && (p.Released || p.Generation != in.Generation) {
		if in.Op == lifecycle.ControlCheck {
			return ControlOutput{}, h.cannotStart(spec.Problem{
				Path: "task", Message: fmt.Sprintf("host %s does not have this run any more", h.Name), Remedy: "try again when the run has been placed anew",
			})
		}
		return ControlOutput{}, nil // there is nothing left to control
	} else if err != nil {
		return ControlOutput{}, err
	}
	if err := h.checkRequest(ctx, p, in); err != nil {
		return ControlOutput{}, err
	}
	switch in.Op {
	case lifecycle.ControlSeal:
		_, err := h.plans.change(run, func(p *plan) error {
			p.Sealed = true
			return nil
		})
		return ControlOutput{Tasks: in.Tasks}, err
	case lifecycle.ControlTell:
		if in.Stopping == nil {
			return ControlOutput{}, errors.New("there is nothing to tell")
		}
		_, err := h.services.Learn(run, *in.Stopping)
		return ControlOutput{}, err
	case lifecycle.ControlCheck:
		return ControlOutput{}, h.checkStart(p, in.Start)
	case lifecycle.ControlStacks:
		return h.captureStacks(ctx, run, p, in.Tasks)
	case lifecycle.ControlSignal:
		n, err := spec.SignalNumber(in.Signal)
		if err != nil {
			return ControlOutput{}, err
		}
		reply, err := h.Supervisor.Signal(ctx, supervisor.SignalRequest{Run: run, Tasks: in.Tasks, Generation: in.Generation, Signal: n})
		return ControlOutput{Tasks: reply.Tasks}, err
	case lifecycle.ControlSilence:
		return h.stopTasks(ctx, p, in, supervisor.ReasonSilence)
	case lifecycle.ControlTerminate, lifecycle.ControlRestart:
		reason := supervisor.ReasonTerminate
		if in.Op == lifecycle.ControlRestart {
			// A process that could not be started again is better left running.
			if err := h.checkAgain(p, in.Tasks); err != nil {
				return ControlOutput{}, err
			}
			reason = supervisor.ReasonRestart
		}
		return h.stopTasks(ctx, p, in, reason)
	default:
		return ControlOutput{}, fmt.Errorf("unknown operation %q", in.Op)
	}
}
