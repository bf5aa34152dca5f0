package taskservices

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// told is a server that refuses all messages and records them.
type told struct {
	barriers.Server
	inputs   chan spec.BarrierInput
	messages chan spec.BarrierMessage
}

func (s told) Tell(_ context.Context, in spec.BarrierInput, m spec.BarrierMessage) error {
	s.inputs <- in
	s.messages <- m
	return &barriers.RefusedError{Err: errors.New("too large")}
}

func meetingsOf(t *testing.T, s barriers.Server) *barriers.Barriers {
	t.Helper()
	m := barriers.New(barriers.Config{Server: s, Host: "host-a", Queue: "q", StateDir: t.TempDir(), Log: zap.NewNop(), Waits: metrics.New().BarrierWaits})
	t.Cleanup(m.Close)
	return m
}

func twoWorkers() barriers.Arrival {
	return barriers.Arrival{
		Run: spec.RunRef{WorkflowID: "iris", RunID: "1", Generation: 3}, Task: "worker-0", Name: "epoch", Key: "k",
		Participants: []string{"worker-0", "worker-1"}, Here: []string{"worker-0"},
	}
}

// A task's arrival reaches the round, and the server's error reaches the task.
func TestArrivalsAreBroughtToTheServer(t *testing.T) {
	s := told{inputs: make(chan spec.BarrierInput, 1), messages: make(chan spec.BarrierMessage, 1)}
	across := meetingsOf(t, s)
	a := twoWorkers()
	a.Timeout, a.Value = time.Minute, "mine"
	_, err := across.Arrive(t.Context(), a)
	require.ErrorContains(t, err, "the server refused the arrival: too large")
	in, m := <-s.inputs, <-s.messages
	assert.Equal(t, spec.RunRef{WorkflowID: "iris", RunID: "1", Generation: 3}, in.Run)
	assert.Equal(t, []string{"worker-0", "worker-1"}, in.Participants)
	assert.Equal(t, []spec.BarrierArrival{{Task: "worker-0", Key: "k", Value: "mine", Timeout: time.Minute}}, m.Arrived)
}

// away is an unreachable server.
type away struct{ barriers.Server }

func (away) Tell(context.Context, spec.BarrierInput, spec.BarrierMessage) error {
	return errors.New("no connection yet")
}

func (away) Withdraw(context.Context, string, spec.BarrierMessage) error {
	return errors.New("no connection yet")
}

// Tasks that arrive before the host worker connects to the server wait for the connection. If the
// host worker stops first, they are asked to retry, which does not count as an error.
func TestArrivingWithoutAServer(t *testing.T) {
	across := meetingsOf(t, away{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := across.Arrive(ctx, twoWorkers())
	require.ErrorIs(t, err, context.DeadlineExceeded)

	told := make(chan error, 1)
	go func() {
		_, err := across.Arrive(t.Context(), twoWorkers())
		told <- err
	}()
	across.Close()
	require.ErrorIs(t, <-told, barriers.ErrShutdown)
}
