package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// StopTasks stops processes like a cancellation of RunTask, which the server delivers some
// milliseconds later.
func (h *Host) StopTasks(ctx context.Context, in hostapi.TasksInput) (none hostapi.None, err error) {
	run := runOf(ctx, in.Run)
	for _, task := range in.Tasks {
		h.leases.stop(runkey.Task{Run: run, Generation: in.Generation, Task: task})
	}
	return none, nil
}
