package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// checkStart asks the host of a task whether it can start the task: a failed start is a failure
// of the run, and a mistake in a request should not cause one. It blocks the request and
// nothing else.
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

// hostOf returns the host of a task, and the host of the first task for a task outside the
// spec.
func (pl *placer) hostOf(task string) *host {
	if h, ok := pl.placed[task]; ok {
		return h
	}
	return pl.hosts[0]
}
