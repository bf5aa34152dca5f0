package barrier

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (r *Round) arrives(task, key string) []Answer {
	return r.Step(Arrived{Host: "a", Task: task, Key: key, Digest: r.digest, Now: time.Unix(1, 0)})
}

// A round is limited: if a task has too many arrivals, the next one is refused, and the round
// continues without it.
func TestTooManyArrivalsOfATask(t *testing.T) {
	r := New([]string{"worker-0", "worker-1"}, time.Unix(0, 0))
	for i := range maxKeys {
		require.Empty(t, r.arrives("worker-0", fmt.Sprint("k", i)))
	}
	require.Equal(t, []Answer{{Task: "worker-0", Key: "one more", Host: "a", Refused: spec.BarrierTooMany}}, r.arrives("worker-0", "one more"))
	require.Len(t, r.arrives("worker-0", "one more"), 1, "whoever asks again is told again")
	refusal := spec.BarrierRefusal{Task: "worker-0", Key: "one more", Why: spec.BarrierTooMany}
	require.Equal(t, []spec.BarrierRefusal{refusal}, r.Status().Refused)
	require.Empty(t, r.arrives("worker-0", "k0"), "the same again is no other one")

	// A withdrawal makes way for another arrival.
	r.Step(Withdrawn{Task: "worker-0", Key: "k0", Now: time.Unix(2, 0)})
	require.Empty(t, r.arrives("worker-0", "in its place"))

	answers := r.arrives("worker-1", "k")
	require.Len(t, answers, maxKeys+1)
	require.Equal(t, spec.BarrierReleased, r.Result().State)
	require.Len(t, r.Result().Arrived["worker-0"], maxKeys)
	require.Equal(t, []spec.BarrierRefusal{refusal}, r.Result().Refused)
	require.Equal(t, []string{"worker-0", "worker-1"}, r.Result().Participants)

	// The same holds at the moment of closing.
	late := r.arrives("worker-0", "late")
	require.Equal(t, []Answer{{Task: "worker-0", Key: "late", Host: "a", Refused: spec.BarrierTooMany}}, late)
	require.Len(t, r.Result().Refused, 2)
}

func TestRefusalsAreBounded(t *testing.T) {
	r := New([]string{"worker-0", "worker-1"}, time.Unix(0, 0))
	for i := range maxRefused + 10 {
		e := Arrived{Host: "a", Task: "worker-0", Key: fmt.Sprint("k", i), Digest: "another"}
		require.Equal(t, []Answer{{Task: "worker-0", Key: e.Key, Host: "a", Refused: spec.BarrierOthers}}, r.Step(e))
	}
	require.Len(t, r.Status().Refused, maxRefused)
}

// A missing task can still arrive unless the run reports otherwise.
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
