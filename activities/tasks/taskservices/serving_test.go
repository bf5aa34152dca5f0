package taskservices

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// full are plans that cannot be written while full.is is true.
type full struct {
	*remembered
	is bool
}

func (p *full) Note(k runkey.Run, change func(*Notes)) (Run, error) {
	if p.is {
		return Run{}, errors.New("no space left on device")
	}
	return p.remembered.Note(k, change)
}

func anyQueue() *toldQueues { return &toldQueues{told: make(chan closure.QueueInput, 100)} }

func asks(process string, slots int) taskapi.ClosuresRequest {
	return taskapi.ClosuresRequest{Process: process, Seq: 1, Slots: slots, Free: slots, Functions: []string{"f"}}
}

// The plan names all processes that may have been given closures, and no others.
func TestWhoServesIsNoted(t *testing.T) {
	plans := plansOf(&spec.RunSpec{})
	s := newServices(t, Config{Plans: plans, Queues: anyQueue()})
	next := func(task string, in taskapi.ClosuresRequest) {
		t.Helper()
		_, err := s.brokers.Next(t.Context(), by(task), in)
		require.NoError(t, err)
	}
	next("worker-0", asks("a", 1))
	next("worker-0", asks("forked", 1))
	next("worker-1", asks("b", 1))
	run, err := plans.Run(servedRun)
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"worker-0": {"a", "forked"}, "worker-1": {"b"}}, run.servers())

	s.brokers.Known(servedRun).ProcessEnded("worker-0", "forked")
	next("worker-0", asks("another", 1))
	in := asks("b", 0)
	in.Seq = 2
	next("worker-1", in)
	run, err = plans.Run(servedRun)
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"worker-0": {"a", "another"}}, run.servers())
}

// A process that the next host worker would not wait for is given nothing.
func TestAProcessThatCannotBeNotedAsksAgain(t *testing.T) {
	plans := &full{remembered: plansOf(&spec.RunSpec{})}
	s := newServices(t, Config{Plans: plans, Queues: anyQueue()})
	_, err := s.brokers.Next(t.Context(), by("worker-0"), asks("a", 1))
	require.NoError(t, err)
	plans.is = true
	_, err = s.brokers.Next(t.Context(), by("worker-0"), asks("b", 1))
	require.ErrorIs(t, err, taskapi.ErrClosuresAway)
	_, err = s.brokers.Next(t.Context(), by("worker-0"), asks("a", 1))
	require.NoError(t, err, "it was noted before")
	plans.is = false
	_, err = s.brokers.Next(t.Context(), by("worker-0"), asks("b", 1))
	require.NoError(t, err)
}
