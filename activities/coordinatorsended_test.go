package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	fakes "github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// servedQueue is a queue that answers.
type servedQueue struct {
	taskservices.Queues
	server *fakes.Server
}

func (q *servedQueue) Client(run spec.BarrierRun) (*closurequeue.Client, error) {
	return closurequeue.NewClient(q.server, run), nil
}

func (q *servedQueue) Open(ctx context.Context, c *closurequeue.Client, _ closure.QueueInput) error {
	return c.Open(ctx, closurequeue.Options{})
}

// What a coordinator has created that was killed is released by its host: when the next
// process of its task is there, and when there will be none, also by the host worker after
// the one that has seen it coordinate.
func TestAHostReleasesWhatKilledCoordinatorsCreated(t *testing.T) {
	dir := t.TempDir()
	q := &servedQueue{server: fakes.New(t, map[string]fakes.Function{"f": nil})}
	start := func() *Host {
		h, err := NewHost(Config{Name: "host-a", StateDir: dir, Supervisor: &listed{}, Log: zap.NewNop(), Queues: q})
		require.NoError(t, err)
		t.Cleanup(func() { _ = h.tasks.Close() })
		return h
	}
	h := start()
	p, err := h.plans.update(servedRun, func(*plan) (*plan, error) {
		s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2), Command: []string{"x"}}}}
		return &plan{Run: servedRun, Spec: s.WithDefaults(), Tasks: []string{"worker-0", "worker-1"}}, nil
	})
	require.NoError(t, err)
	by := func(task string) taskapi.ID { return taskapi.ID{Run: taskapi.Run(servedRun), Task: task} }
	created := uint64(0)
	create := func(task string, process int) {
		created++
		_, err := h.coordinating.CreateResource(t.Context(), by(task), closure.ResourceRequest{
			Client: "c", Number: created, Resource: closure.Resource{Function: "f"}, Task: task, Process: process,
		})
		require.NoError(t, err)
	}
	for process := range 4 {
		_, err = h.coordinating.Open(t.Context(), by("worker-0"), process)
		require.NoError(t, err)
		assert.Zero(t, q.server.Counts().Resource)
		create("worker-0", process)
	}
	create("worker-1", 0)
	ended := func(task string, number int) []supervisor.Process {
		return []supervisor.Process{{Key: supervisor.Key{Run: servedRun, Task: task}, Number: number}}
	}
	h = start()
	h.coordinatorEnded(p, ended("worker-1", 0)) // it has not opened the queue here
	h.coordinatorEnded(p, ended("worker-0", 3))
	require.Eventually(t, func() bool { return q.server.Counts().Resource == 1 }, time.Minute, time.Millisecond)
}
