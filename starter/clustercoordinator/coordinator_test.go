package clustercoordinator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

var patience = queues.Patience

// fixture is a coordinator, and the server of its queue.
type fixture struct {
	*queues.Server
	*Coordinator
	t *testing.T
	// release ends the calls of wait.
	release chan struct{}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, release: make(chan struct{})}
	f.Server = queues.New(t, queues.Functions(f.release))
	f.Coordinator = f.attach()
	return f
}

func (f *fixture) attach() *Coordinator {
	f.t.Helper()
	q := must.Get(closurequeue.Open(patience(f.t), f.Server, "", closure.QueueInput{Run: queues.Run}))(f.t)
	c := Of(q)
	f.t.Cleanup(c.Close)
	return c
}

func (f *fixture) schedule(function string, args ...any) *RemoteValue {
	f.t.Helper()
	v := must.Get(f.Schedule(patience(f.t), function, args...))(f.t)
	return v
}

// When Close returns, the scheduled closures are in the queue, and they are still called.
func TestCloseSendsWhatWasScheduled(t *testing.T) {
	f := newFixture(t)
	const n = 1500
	for i := range n {
		f.schedule("same", i)
	}
	f.Close()
	assert.Equal(t, uint64(n), f.Counts().Scheduled)
	other := f.attach()
	require.NoError(t, other.Join(patience(t)))
	assert.Equal(t, uint64(n), f.Counts().Finished)
}

// A server that is away holds Close up for a while only.
func TestCloseWaitsForAWhile(t *testing.T) {
	f := newFixture(t)
	f.patience = time.Millisecond
	f.Away(true)
	v := f.schedule("same", 1)
	f.Close()
	_, err := v.JSON(patience(t))
	require.ErrorContains(t, err, "the coordinator was closed")
}

// SEED-35: while a join waits, schedule in another goroutine waits, too.
func TestAJoinHoldsSchedulesBack(t *testing.T) {
	f := newFixture(t)
	f.schedule("wait")
	joined := make(chan error, 1)
	go func() { joined <- f.Join(patience(t)) }()
	require.Eventually(t, func() bool { return f.Updates(closure.UpdateJoin) == 1 }, time.Minute, time.Millisecond)
	over, cancel := context.WithCancel(patience(t))
	cancel()
	_, err := f.Schedule(over, "same", 2)
	require.ErrorIs(t, err, context.Canceled)
	close(f.release)
	require.NoError(t, <-joined)
	two := must.Get(Get[int](patience(t), f.schedule("same", 2)))(t)
	assert.Equal(t, 2, two)
}
