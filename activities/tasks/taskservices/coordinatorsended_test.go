package taskservices

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	fakes "github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// servedQueue is a queue that answers requests.
type servedQueue struct {
	Queues
	server *fakes.Server
}

func (q *servedQueue) Client(run spec.RunRef) (*closurequeue.Client, error) {
	return closurequeue.NewClient(q.server, run), nil
}

// The host releases the resources of a killed coordinator when the next process of its task is
// there, or when there will be none. The next host worker does so, too.
func TestAHostReleasesWhatKilledCoordinatorsCreated(t *testing.T) {
	q := &servedQueue{server: fakes.New(t, map[string]fakes.Function{"f": nil})}
	plans := plansOf(&spec.RunSpec{})
	h := newServices(t, Config{Plans: plans, Queues: q})
	created := uint64(0)
	create := func(task string, process int) {
		created++
		_, problem := h.coordinators.Answer(t.Context(), by(task), process, wire.OpResources, fmt.Appendf(nil, `{"client":"c","number":%d,"resource":{"function":"f"}}`, created))
		require.Nil(t, problem)
	}
	for process := range 4 {
		_, problem := h.coordinators.Answer(t.Context(), by("worker-0"), process, wire.OpOpen, nil)
		require.Nil(t, problem)
		assert.Zero(t, q.server.Counts().Resource)
		create("worker-0", process)
	}
	create("worker-1", 0)
	h.Close()
	h = newServices(t, Config{Plans: plans, Queues: q})
	ended := func(task string, process int) {
		h.Ended(runkey.Task{Run: servedRun, Generation: 1, Task: task}, process, "exited with exit code 1")
	}
	ended("worker-1", 0) // worker-1 has not opened the queue here
	ended("worker-0", 3)
	require.Eventually(t, func() bool { return q.server.Counts().Resource == 1 }, time.Minute, time.Millisecond)
}
