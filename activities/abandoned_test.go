package activities

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// twoHosts is a cluster of two workers; this host has the first.
func twoHosts() hostapi.Cluster {
	return hostapi.Cluster{Hosts: 2, Members: []hostapi.Member{
		{Type: "worker", Host: "host-a", Address: "host-a:1"}, {Type: "worker", Index: 1, Rank: 1, Host: "host-b", Address: "host-b:1"},
	}}
}

// opens takes messages, releases no task, and reports which barriers were ended.
type opens struct {
	barriers.Server
	told  chan spec.BarrierMessage
	ended chan string
}

func (s opens) Tell(_ context.Context, _ spec.BarrierInput, m spec.BarrierMessage) error {
	s.told <- m
	return nil
}

func (s opens) Result(ctx context.Context, _ string) (spec.BarrierResult, error) {
	<-ctx.Done()
	return spec.BarrierResult{}, ctx.Err()
}

func (s opens) Withdraw(context.Context, string, spec.BarrierMessage) error {
	return barriers.ErrClosed
}

func (s opens) Status(context.Context, string) (spec.BarrierStatus, error) {
	return spec.BarrierStatus{}, barriers.ErrClosed
}

func (s opens) End(_ context.Context, id, _ string) error {
	s.ended <- id
	return nil
}

// releasing is a supervisor that has nothing to release of a run.
type releasing struct{ listed }

func (*releasing) Release(context.Context, supervisor.ReleaseRequest) (supervisor.ProcessesReply, error) {
	return supervisor.ProcessesReply{}, nil
}

// A run that was closed without being released leaves no barriers behind either.
func TestAbandonedRunsLeaveNoBarriers(t *testing.T) {
	s := opens{told: make(chan spec.BarrierMessage, 1), ended: make(chan string, 1)}
	state := t.TempDir()
	h, err := NewHost(Config{Name: "host-a", StateDir: state, Supervisor: &releasing{}, Rounds: s, Log: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}
	p, err := h.plans.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2), Command: []string{"x"}}}}).WithDefaults(), LogRoot: t.TempDir(), Tasks: []string{"worker-0"}, Cluster: twoHosts()}, nil
	})
	require.NoError(t, err)
	socket, err := h.listen(p, runkey.Task{Run: run, Task: "worker-0"}, 0, "")
	require.NoError(t, err)
	t.Setenv(taskapi.SocketVar, socket)
	c, err := task.Current()
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		_, err := c.Barrier(t.Context(), "epoch")
		answered <- err
	}()
	select {
	case <-s.told:
	case err := <-answered:
		t.Fatal(err)
	}
	require.NoError(t, h.watch.abandon(p, "the run is closed", nil))
	assert.Equal(t, "iris/barrier/1/0/epoch/1", <-s.ended)
}

// An open run has not ended, even if this host no longer has any part of it.
func TestOnlyTheEndOfARunIsNoted(t *testing.T) {
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: &releasing{}, Log: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	logs := t.TempDir()
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}
	note := tasklog.RunDir(logs, run.WorkflowID, run.RunID) + ".json"
	require.NoError(t, os.MkdirAll(filepath.Dir(note), 0o700))
	require.NoError(t, retention.Begin(logs, run, h.StateDir))
	abandon := func(closed *workflowpb.WorkflowExecutionInfo) string {
		p, err := h.plans.update(run, func(*plan) (*plan, error) {
			return &plan{Run: run, Spec: (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(1), Command: []string{"x"}}}}).WithDefaults(), LogRoot: logs, Tasks: []string{"worker-0"}}, nil
		})
		require.NoError(t, err)
		require.NoError(t, h.watch.abandon(p, "it lapsed, or is closed", closed))
		b, err := os.ReadFile(note)
		require.NoError(t, err)
		return string(b)
	}
	assert.NotContains(t, abandon(nil), `"ended"`)
	assert.Contains(t, abandon(&workflowpb.WorkflowExecutionInfo{}), `"ended"`)
}
