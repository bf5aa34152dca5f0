package barrier

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A missing task can still arrive unless the run says otherwise.
func TestJudgeMissing(t *testing.T) {
	run := spec.RunRef{WorkflowID: "iris", RunID: "e", Generation: 1}
	in := spec.BarrierCheckInput{Run: run, Missing: []string{"worker-0", "worker-1", "worker-2", "worker-9"}}
	tasks := []spec.TaskStatus{
		{Name: "worker-0", State: spec.TaskRunning},
		{Name: "worker-1", State: spec.TaskEnded, Exit: &spec.Exit{ExitCode: 3}},
		{Name: "worker-2", State: spec.TaskEnded, Exit: &spec.Exit{ExitCode: 137, Signal: "SIGKILL"}},
		{Name: "worker-3", State: spec.TaskEnded}, // the round does not wait for it
	}
	out := JudgeMissing(spec.Status{State: spec.RunRunning, Generation: 1, Tasks: tasks}, in)
	require.Empty(t, out.RunEnded)
	require.Equal(t, []spec.BarrierEndedTask{
		{Task: "worker-1", How: "exit code 3"}, {Task: "worker-2", How: "SIGKILL"}, {Task: "worker-9", How: "the run has no such task"},
	}, out.Ended)

	for _, state := range []spec.TaskState{spec.TaskPending, spec.TaskRunning, spec.TaskStopping} {
		out = JudgeMissing(spec.Status{State: spec.RunRunning, Generation: 1, Tasks: []spec.TaskStatus{{Name: "worker-0", State: state}}},
			spec.BarrierCheckInput{Run: run, Missing: []string{"worker-0"}})
		require.Equal(t, spec.BarrierCheckOutput{}, out, state)
	}
	for _, status := range []spec.Status{
		{State: spec.RunRunning, Generation: 2}, {State: spec.RunRestarting, Generation: 1},
	} {
		require.Equal(t, "generation 1 of run iris is over", JudgeMissing(status, in).RunEnded)
	}
	for _, state := range []spec.RunState{spec.RunReleasing, spec.RunEnded} {
		require.Equal(t, "run iris is ending", JudgeMissing(spec.Status{State: state, Generation: 1}, in).RunEnded)
	}
}
