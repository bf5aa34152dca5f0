package coordinator

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heard is an outside that records the stops and clears it receives.
type heard struct {
	mu   sync.Mutex
	told []any
	took time.Duration // the time that a call takes
	fail error
}

type passedOn struct {
	err   error
	clean bool
}

type passedClear struct{}

func (h *heard) tell(what any) error {
	time.Sleep(h.took)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, what)
	return h.fail
}

func (h *heard) RequestStop(err error, clean bool) error { return h.tell(passedOn{err, clean}) }
func (h *heard) ClearStop() error                        { return h.tell(passedClear{}) }

func TestWhatIsPassedOn(t *testing.T) {
	c, o := New(), &heard{}
	untie := c.Tie(o)
	assert.Empty(t, o.told)
	c.ClearStop()
	assert.Empty(t, o.told, "there was nothing to clear")
	require.NoError(t, c.RequestStop(errFirst))
	require.NoError(t, c.RequestStop(errTooLate))
	require.NoError(t, c.RequestStop(nil))
	c.ClearStop()
	require.NoError(t, c.RequestStop(io.EOF))
	c.ClearStop()
	require.NoError(t, c.RequestStop(nil))
	assert.Equal(t, []any{passedOn{errFirst, false}, passedClear{}, passedOn{io.EOF, true}, passedClear{}, passedOn{nil, false}}, o.told,
		"the first of each stop")
	untie()
	c.ClearStop()
	require.NoError(t, c.RequestStop(errSecond))
	assert.Len(t, o.told, 5)

	// This coordinator has stopped before it is tied.
	other := &heard{}
	defer c.Tie(other)()
	assert.Equal(t, []any{passedOn{errSecond, false}}, other.told)
}

func TestAPanicIsNoCleanStopOutside(t *testing.T) {
	c, o := New(), &heard{}
	defer c.Tie(o)()
	require.NoError(t, c.Do(func() error { panic(io.EOF) }))
	require.Len(t, o.told, 1)
	got, ok := o.told[0].(passedOn)
	require.True(t, ok)
	assert.False(t, got.clean)
	assert.IsType(t, &PanicError{}, got.err)
}

// A stop that comes from outside is not sent back there.
func TestWhatComesFromOutside(t *testing.T) {
	c, o := New(), &heard{}
	defer c.Tie(o)()
	thread := c.Go("waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	c.OutsideStopped(errFirst)
	c.OutsideStopped(errTooLate)
	assert.True(t, c.ShouldStop())
	<-thread.Done()
	require.ErrorIs(t, c.Join(), errFirst)
	c.OutsideCleared()
	assert.False(t, c.ShouldStop())
	assert.False(t, c.Joined())
	require.NoError(t, c.Err())

	require.NoError(t, c.Join())
	c.OutsideCleared()
	assert.True(t, c.Joined(), "there was no stop")
	c.OutsideStopped(io.EOF)
	require.ErrorIs(t, c.Join(), io.EOF, "no rule of this process is asked, and Join has been here")
	c.OutsideCleared()
	c.OutsideStopped(nil)
	assert.True(t, c.ShouldStop())
	require.NoError(t, c.Join())
	assert.Empty(t, o.told)

	// A request here is passed on as well, because the stop may have been cleared outside
	// since.
	c.OutsideCleared()
	c.OutsideStopped(nil)
	require.NoError(t, c.RequestStop(errTooLate))
	require.NoError(t, c.RequestStop(nil))
	require.NoError(t, c.Join())
	assert.Equal(t, []any{passedOn{errTooLate, false}}, o.told)
}

// The caller of Join may end the process next, so by then the outside must know.
func TestJoinWaitsUntilItIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, o := New(), &heard{took: time.Hour}
		defer c.Tie(o)()
		go func() { _ = c.RequestStop(nil) }() // Join does not know this thread
		synctest.Wait()
		assert.True(t, c.ShouldStop(), "in here at once")
		began := time.Now()
		require.NoError(t, c.Join())
		assert.Equal(t, time.Hour, time.Since(began))
		assert.Len(t, o.told, 1)
	})
}

// If a stop cannot be passed on, Join fails.
func TestItCannotBePassedOn(t *testing.T) {
	away := errors.New("away")
	c, log := newLogged()
	defer c.Tie(&heard{fail: away})()
	require.NoError(t, c.RequestStop(nil))
	require.ErrorIs(t, c.Join(), away)
	assert.Contains(t, log(), "could not be passed on")
	c.ClearStop()
	require.NoError(t, c.RequestStop(errFirst))
	require.Equal(t, errFirst, c.Join(), "the error itself matters more")
}
