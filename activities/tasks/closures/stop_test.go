package closures

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stop tells the tasks to stop together.
func (m *machine) stop() {
	m.server.SetStopping(runkey.Run{}, spec.Stopping{Seq: 1, Stop: true})
}

// noStops is for tests in which no task requests a stop.
type noStops struct{ taskapi.Stops }

// queued leases n closures of the function hold.
func (m *machine) queued(n int) (outcomes func() []closure.Outcome) {
	m.t.Helper()
	out := make(chan closure.LeaseResult, n)
	ctx, cancel := context.WithCancel(m.t.Context())
	m.t.Cleanup(cancel)
	var in closure.Lease
	for i := range n {
		in.Closures = append(in.Closures, call(uint64(i+1), "hold", "hold-"+strconv.Itoa(i+1)))
	}
	go func() {
		r, err := m.now().Lease(ctx, in)
		if err == nil {
			out <- r
		}
	}()
	return func() []closure.Outcome { return (<-out).Outcomes }
}

// Serving tasks stop together with the others: idle ones at once, and busy ones after their
// calls, whose values count.
func TestGoStopsTogether(t *testing.T) {
	m := newMachine(t, "worker-0", "worker-1")
	began, goOn := make(chan bool, 9), make(chan bool)
	functions := map[string]any{"hold": func(_ context.Context, s string) (string, error) { began <- true; <-goOn; return s, nil }}
	busy := m.goProcess("worker-0", 2, functions)
	m.awaitServing(1)
	outcomes := m.queued(2)
	<-began
	<-began
	idle := m.goProcess("worker-1", 1, functions)
	m.awaitServing(2)
	m.stop()
	require.NoError(t, <-idle.ended)
	m.awaitServing(0)
	select {
	case err := <-busy.ended:
		t.Fatal("it is busy, and has ended", err)
	default:
	}
	close(goOn)
	require.NoError(t, <-busy.ended)
	var values []string
	for _, o := range outcomes() {
		values = append(values, string(o.Value))
	}
	assert.ElementsMatch(t, []string{`"hold-1"`, `"hold-2"`}, values)
	// A process that begins to serve while the others stop ends at once.
	late := m.goProcess("worker-0", 1, functions)
	require.NoError(t, <-late.ended)
}

func TestPythonStopsTogether(t *testing.T) {
	for _, slots := range []int{1, 3} {
		t.Run(strconv.Itoa(slots)+" slots", func(t *testing.T) {
			m := newMachine(t, "worker-0", "worker-1")
			source := `
@clusterrun.function
def hold(name):
    print(name, flush=True)
    while not os.path.exists("` + m.state + `/go"):
        time.sleep(0.01)
    return name
clusterrun.serve(` + strconv.Itoa(slots) + `)
print("over", flush=True)
`
			busy := m.pyProcess("worker-0", source)
			m.awaitServing(1)
			outcomes := m.queued(slots)
			var names []string
			for range slots {
				names = append(names, busy.line())
			}
			idle := m.pyProcess("worker-1", source, "TF_COORDINATOR_SCHEDULE_START_DELAY=1000", "CLUSTERRUN_TASK_INDEX=1")
			m.stop()
			assert.Equal(t, "over", idle.line())
			code, stderr := idle.end()
			assert.Zero(t, code, stderr)
			m.awaitServing(0)
			require.NoError(t, os.WriteFile(m.state+"/go", nil, 0o644))
			assert.Equal(t, "over", busy.line())
			code, stderr = busy.end()
			assert.Zero(t, code, stderr)
			assert.Empty(t, m.now().ProcessEnded("worker-0", ""), "it has left in order")
			var values []string
			for _, o := range outcomes() {
				var name string
				require.NoError(t, json.Unmarshal(o.Value, &name))
				values = append(values, name)
			}
			assert.ElementsMatch(t, names, values)
		})
	}
}
