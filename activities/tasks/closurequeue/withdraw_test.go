package closurequeue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// A caller that has stopped waiting takes no error from those who wait: the queue keeps it for
// the next request.
func TestWhoDoesNotWaitTakesNoError(t *testing.T) {
	f := newFixture(t)
	waits := f.schedule(newClosure("wait"))
	_, err := waits.ID(patience(t))
	require.NoError(t, err)

	watcher := f.open()
	ctx, cancel := context.WithCancel(patience(t))
	joined := make(chan error, 1)
	go func() { joined <- watcher.Join(ctx) }()
	f.eventually("the join waits", func() bool { return f.Updates(closure.UpdateJoin) == 1 })
	cancel()
	require.ErrorIs(t, <-joined, context.Canceled)
	require.Equal(t, 1, f.Updates(closure.UpdateWithdraw))

	f.assertError("no", f.schedule(newClosure("fails", "no")))
	s, err := f.Status(patience(t))
	require.NoError(t, err)
	assert.Equal(t, closure.QueueFailed, s.State, "nobody has asked")
	close(f.release)
	f.assertValue(`"released"`, waits)
	require.EqualError(t, f.Join(patience(t)), "no")
}

// A join that was withdrawn, for instance because its host worker ended, can be requested
// again. One that another caller requested continues even if it is withdrawn here.
func TestAJoinThatWasTakenBackIsAskedForAgain(t *testing.T) {
	f := newFixture(t)
	f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	request := closure.WaitRequest{Client: "task", Call: 1}

	here, cancel := context.WithCancel(patience(t))
	ended := make(chan error, 1)
	go func() { _, err := f.client.Join(here, request); ended <- err }()
	f.eventually("the join waits", func() bool { return f.Updates(closure.UpdateJoin) == 1 })
	elsewhere := make(chan closure.WaitAnswer, 1)
	go func() {
		a, err := f.client.Join(patience(t), request)
		assert.NoError(t, err)
		elsewhere <- a
	}()
	f.eventually("it waits twice", func() bool { return f.Updates(closure.UpdateJoin) == 2 })
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	f.eventually("it is asked for again", func() bool { return f.Updates(closure.UpdateJoin) == 3 })
	close(f.release)
	assert.Equal(t, closure.WaitAnswer{Done: true}, <-elsewhere)
}
