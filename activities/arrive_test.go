package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/barriers"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// told is a server that takes nothing and shows what it was told.
type told struct {
	barriers.Server
	messages chan spec.BarrierMessage
}

func (s told) Tell(_ context.Context, _ spec.BarrierInput, m spec.BarrierMessage) error {
	s.messages <- m
	return &barriers.RefusedError{Err: context.Canceled}
}

// The tasks of this host are announced together; others are not waited for.
func TestArriveKnowsWhoIsHere(t *testing.T) {
	dir, run := t.TempDir(), supervisor.RunKey{Namespace: "n", WorkflowID: "w", RunID: "r"}
	server := told{messages: make(chan spec.BarrierMessage, 2)}
	meetings, err := barriers.New(barriers.Config{Server: server, Host: "a", Queue: "q", StateDir: dir, Log: zap.NewNop()})
	require.NoError(t, err)
	defer meetings.Close()
	h, err := NewHost(Config{StateDir: dir, Meetings: meetings, Log: zap.NewNop()})
	require.NoError(t, err)
	a := barriers.Arrival{Task: "worker-0", Name: "epoch", Key: "k", Participants: []string{"worker-0", "worker-1", "worker-2"}}
	_, err = h.Arrive(t.Context(), run, a)
	require.ErrorIs(t, err, errNoPlan)
	_, err = h.plans.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Tasks: []string{"worker-0", "worker-2", "worker-3"}, Spec: &spec.RunSpec{}}, nil
	})
	require.NoError(t, err)
	done := make(chan error, 2)
	for _, task := range []string{"worker-0", "worker-2"} {
		a := a
		a.Task = task
		go func() {
			_, err := h.Arrive(t.Context(), run, a)
			done <- err
		}()
	}
	for range 2 {
		var refused *barriers.RefusedError
		require.ErrorAs(t, <-done, &refused)
	}
	tasks := map[string]bool{}
	for len(server.messages) > 0 {
		m := <-server.messages
		require.Equal(t, "a", m.Host)
		for _, arrived := range m.Arrived {
			tasks[arrived.Task] = true
		}
	}
	require.Equal(t, map[string]bool{"worker-0": true, "worker-2": true}, tasks)

	_, err = (&Host{}).Arrive(t.Context(), run, a)
	require.ErrorIs(t, err, errNoBarriers)
}

// Tasks can arrive before there is a connection to the server; they wait for it.
func TestArriveWithoutAServer(t *testing.T) {
	meetings, err := barriers.New(barriers.Config{Server: NewBarrierServer("q"), Host: "a", Queue: "q", StateDir: t.TempDir(), Log: zap.NewNop()})
	require.NoError(t, err)
	defer meetings.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = meetings.Arrive(ctx, barriers.Arrival{Task: "worker-0", Name: "epoch", Key: "k", Participants: []string{"worker-0"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
