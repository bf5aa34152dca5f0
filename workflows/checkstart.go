package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// checkStart asks a task's host whether it can start the task, because a failed start fails the
// run, and a mistake in a request should not. It blocks only the request.
func (r *clusterRun) checkStart(ctx workflow.Context, e lifecycle.StartTask) error {
	t, err := r.spec.AddedTask(e.StartTaskRequest)
	if err != nil {
		return refused(err)
	}
	name := t.Name()
	h := r.placer.hostOf(name)
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	_, err = call(askingFirst(ctx, h.Queue, "check "+name), hostapi.Host.CheckStart,
		hostapi.CheckStartInput{Group: r.calls.group(), Task: t}).get(ctx)
	if err != nil {
		return refusedBy(h, err)
	}
	return nil
}

// hostOf returns a task's host, or, if the task is not in the spec, the first task's host.
func (pl *placer) hostOf(task string) *host {
	if h, ok := pl.placed[task]; ok {
		return h
	}
	return pl.hosts[0]
}
