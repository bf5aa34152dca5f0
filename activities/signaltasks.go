package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// SignalTasks sends a signal to tasks' processes.
func (h *Host) SignalTasks(ctx context.Context, in spec.HostRequest[spec.SignalRequest]) (spec.RequestAnswer, error) {
	p, err := h.planOf(ctx, in.Group)
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	q := request{"signal", in.Request.Tasks, policy.AskSignal}
	if in.Request.Signal == p.Spec.NoticeSignal {
		q.ask = "" // as for the stop that follows the notice
	}
	if err := h.gate.allow(ctx, p, q); err != nil {
		return spec.RequestAnswer{}, err
	}
	n, err := spec.SignalNumber(in.Request.Signal)
	if err != nil {
		return spec.RequestAnswer{}, err
	}
	reply, err := h.Supervisor.Signal(ctx, supervisor.SignalRequest{Run: p.Run, Tasks: in.Request.Tasks, Generation: in.Generation, Signal: n})
	return withUnreached(spec.RequestAnswer{Tasks: reply.Tasks}, in.Request.Tasks), err
}
