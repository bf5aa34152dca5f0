package web

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
			value, _, err := f.get(t.Context(), "run", time.Minute, ask)
			assert.NoError(t, err)
			assert.Equal(t, 1, value)
		})
	}
	all.Wait()
	other, _, err := f.get(t.Context(), "other", time.Minute, ask)
	require.NoError(t, err)
	assert.Equal(t, 2, other)
	f.forget("run")
	again, _, err := f.get(t.Context(), "run", time.Minute, ask)
	require.NoError(t, err)
	assert.Equal(t, 3, again)
}

// A page does not wait for a slow answer, and the next one has it. A page
// waits even less for a newer answer than the one it knows.
func TestASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f facts[int]
		asked, began := 0, time.Now()
		ask := func(ctx context.Context) (int, error) {
			asked++
			select {
			case <-time.After(5 * time.Second):
				return asked, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		_, _, err := f.get(first, "run", time.Second, ask)
		require.ErrorIs(t, err, errPending)
		assert.Equal(t, time.Second, time.Since(began))
		leave() // the question continues
		value, at, err := f.get(t.Context(), "run", time.Minute, ask)
		require.NoError(t, err)
		assert.Equal(t, 1, value)
		assert.Equal(t, 5*time.Second, at.Sub(began))

		time.Sleep(most)
		again := time.Now()
		value, at, err = f.get(t.Context(), "run", time.Minute, ask)
		require.NoError(t, err)
		assert.Equal(t, 1, value, "the earlier answer")
		assert.Equal(t, 5*time.Second, at.Sub(began))
		assert.Equal(t, patience, time.Since(again))
		synctest.Wait()
		time.Sleep(5 * time.Second)
		value, _, err = f.get(t.Context(), "run", 0, ask)
		require.NoError(t, err)
		assert.Equal(t, 2, value)
		assert.Equal(t, 2, asked)
	})
}

// A browser that leaves does not spoil the facts of others.
func TestABrowserThatLeaves(t *testing.T) {
	var f facts[int]
	gone, leave := context.WithCancel(t.Context())
	let := make(chan struct{})
	_, _, err := f.get(gone, "run", time.Minute, func(ctx context.Context) (int, error) {
		leave()
		<-let
		return 7, ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	close(let)
	value, _, err := f.get(t.Context(), "run", time.Minute, nil)
	require.NoError(t, err)
	assert.Equal(t, 7, value)
}

// An error is a fact, too: a server that does not answer is not asked by each page.
func TestErrorsAreShared(t *testing.T) {
	var f facts[int]
	asked := 0
	for range 3 {
		_, _, err := f.get(t.Context(), "run", time.Minute, func(context.Context) (int, error) { asked++; return 0, errors.New("no") })
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
