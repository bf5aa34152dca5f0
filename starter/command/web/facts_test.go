package web

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Several pages ask once.
func TestFactsAreShared(t *testing.T) {
	var f facts[int]
	var asked atomic.Int32
	ask := func(context.Context) (int, error) { return int(asked.Add(1)), nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			value, _, err := f.get(t.Context(), "run", ask)
			assert.NoError(t, err)
			assert.Equal(t, 1, value)
		})
	}
	all.Wait()
	other, _, err := f.get(t.Context(), "other", ask)
	require.NoError(t, err)
	assert.Equal(t, 2, other)
	f.forget("run")
	again, _, err := f.get(t.Context(), "run", ask)
	require.NoError(t, err)
	assert.Equal(t, 3, again)
}

// A browser that leaves does not spoil the facts of others.
func TestAQuestionThatIsBrokenOff(t *testing.T) {
	var f facts[int]
	gone, leave := context.WithCancel(t.Context())
	_, _, err := f.get(gone, "run", func(ctx context.Context) (int, error) {
		leave()
		return 0, ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	value, _, err := f.get(t.Context(), "run", func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, value)
}

// An error is a fact, too: a server that does not answer is not asked by each page.
func TestErrorsAreShared(t *testing.T) {
	var f facts[int]
	asked := 0
	for range 3 {
		_, _, err := f.get(t.Context(), "run", func(context.Context) (int, error) { asked++; return 0, errors.New("no") })
		require.EqualError(t, err, "no")
	}
	assert.Equal(t, 1, asked)
}

// A slow answer makes the pause before the next question longer.
func TestPause(t *testing.T) {
	assert.Equal(t, least, pause(time.Millisecond))
	assert.Equal(t, 5*time.Second, pause(200*time.Millisecond))
	assert.Equal(t, most, pause(10*time.Second))
}
