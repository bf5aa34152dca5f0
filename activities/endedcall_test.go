package activities

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// again returns the next host worker of the host, which knows only what is on disk.
func (s *serving) again() *serving {
	s.t.Helper()
	next := *s
	var err error
	next.Host, err = NewHost(Config{Name: s.Name, StateDir: s.StateDir, Supervisor: emptied{}, Queues: s.queues, Server: beaten{}, Log: zap.NewNop()})
	require.NoError(s.t, err)
	s.t.Cleanup(next.Close)
	return &next
}

// asks requests closures for a process of worker-0. With no slots, the process leaves.
func (s *serving) asks(process string, seq uint64, slots int) {
	s.t.Helper()
	_, err := s.Brokers().Next(s.t.Context(), runkey.Task{Run: s.run, Task: "worker-0"}, taskapi.ClosuresRequest{
		Process: process, Seq: seq, Slots: slots, Functions: []string{"f"},
	})
	require.NoError(s.t, err)
}

// ended reports that a process of worker-0 has ended, and returns the call that it was in.
// Earlier processes that the supervisor still knows may be passed as well.
func (s *serving) ended(number, code int, before ...supervisor.Process) (call string) {
	s.t.Helper()
	key := runkey.Task{Run: s.run, Task: "worker-0"}
	q := supervisor.Process{Key: key, Number: number, Exit: &supervisor.Exit{Code: code}}
	_, err := s.services.ProcessEnded(append(before, q), code == 0)
	require.NoError(s.t, err)
	p, err := s.plans.get(s.run)
	require.NoError(s.t, err)
	return p.inCall(q)
}

// A process that served and exited with 0 while no host worker was there has not completed: its
// call was lost with the previous host worker.
func TestAServingProcessExitsWhileItsHostWorkerIsDown(t *testing.T) {
	first := newServing(t)
	first.asks("a", 1, 1)
	assert.Empty(t, first.ended(0, 0), "its host worker knows that it had nothing")

	first.asks("b", 1, 1)
	second := first.again()
	assert.Equal(t, spec.UnknownCall, second.ended(1, 0))
	assert.Equal(t, spec.UnknownCall, second.again().ended(1, 0), "and so for whoever judges it again")
	assert.Empty(t, second.ended(2, 0), "the next one did not serve")

	second.asks("c", 1, 1)
	third := second.again()
	third.asks("c", 2, 1)
	assert.Empty(t, third.ended(3, 0), "it has told the new host worker that it has nothing")

	third.asks("d", 1, 1)
	third.asks("d", 2, 0)
	assert.Empty(t, third.again().ended(4, 0), "it had left")

	third = third.again()
	third.asks("e", 1, 1)
	fourth := third.again()
	assert.Empty(t, fourth.ended(5, 1), "its exit code says enough")
	assert.Empty(t, fourth.ended(6, 0))

	fourth.asks("f", 1, 1)
	fifth := fourth.again()
	_, err := fifth.plans.update(fifth.run, func(p *plan) (*plan, error) {
		p.Stopping = &spec.Stopping{Seq: 1, Stop: true}
		return p, nil
	})
	require.NoError(t, err)
	assert.Empty(t, fifth.ended(7, 0), "the tasks stop gracefully")
}

// A task that ends in calls again and again leaves no more calls behind than the supervisor
// remembers processes, because each change writes the whole plan.
func TestCallsOfProcessesThatAreOmittedAreForgotten(t *testing.T) {
	s := newServing(t)
	known := func(numbers ...int) (processes []supervisor.Process) {
		for _, n := range numbers {
			processes = append(processes, supervisor.Process{Key: runkey.Task{Run: s.run, Task: "worker-0"}, Number: n})
		}
		return processes
	}
	for number, before := range [][]supervisor.Process{nil, known(0), known(0, 1), known(0, 2)} {
		s.asks(string(rune('a'+number)), 1, 1)
		s = s.again()
		require.Equal(t, spec.UnknownCall, s.ended(number, 0, before...))
	}
	p, err := s.plans.get(s.run)
	require.NoError(t, err)
	var kept []int
	for _, c := range p.Calls {
		kept = append(kept, c.Process)
	}
	assert.Equal(t, []int{0, 2, 3}, kept)
}
