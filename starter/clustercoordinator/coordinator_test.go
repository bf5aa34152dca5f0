package clustercoordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/memoryqueue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// functions are served. echo returns its argument, slow does so after a second, and fail returns
// an error.
var functions = map[string]memoryqueue.Function{
	"echo": func(_ context.Context, args []any, _ map[string]any) (any, error) { return args[0], nil },
	"slow": func(_ context.Context, args []any, _ map[string]any) (any, error) {
		time.Sleep(time.Second)
		return args[0], nil
	},
	"fail": func(context.Context, []any, map[string]any) (any, error) {
		return nil, &closure.Error{Kind: "ValueError", Message: "no"}
	},
}

// with runs a test in a synctest bubble, with a coordinator and a queue of the given size.
func with(t *testing.T, size int, do func(t *testing.T, c *Coordinator, q *memoryqueue.Queue)) {
	synctest.Test(t, func(t *testing.T) {
		q := memoryqueue.New(size, functions)
		c := must.Get(attach(t.Context(), q))(t)
		defer c.Close()
		do(t, c, q)
	})
}

func scheduled(t *testing.T, c *Coordinator, function string, args ...any) *RemoteValue {
	t.Helper()
	return must.Get(c.Schedule(t.Context(), function, args...))(t)
}

func TestValues(t *testing.T) {
	with(t, 2, func(t *testing.T, c *Coordinator, _ *memoryqueue.Queue) {
		var values []*RemoteValue
		for i := range 20 {
			values = append(values, scheduled(t, c, "echo", i))
		}
		require.NoError(t, c.Join(t.Context()))
		for i, v := range values {
			assert.Equal(t, i, must.Get(Get[int](t.Context(), v))(t))
		}
		assert.True(t, must.Get(c.Done(t.Context()))(t))
	})
}

// far is a queue that takes a millisecond to receive a request.
type far struct{ *memoryqueue.Queue }

func (q far) Sync(ctx context.Context, r closure.SyncRequest) (closure.SyncAnswer, error) {
	time.Sleep(time.Millisecond)
	return q.Queue.Sync(ctx, r)
}

// Flush does not wait for calls, even if a closure is scheduled while a request is in progress.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must.Get(attach(t.Context(), far{memoryqueue.New(100, functions)}))(t)
		defer c.Close()
		scheduled(t, c, "slow", 1)
		synctest.Wait()
		scheduled(t, c, "slow", 2)
		time.Sleep(3 * time.Millisecond / 2) // the second request is in progress
		scheduled(t, c, "slow", 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		require.NoError(t, c.Flush(ctx))
		require.NoError(t, c.Join(t.Context()))
	})
}

// A lone call takes one request. A long call, or one that is not alone, does not delay other
// calls.
func TestALoneCall(t *testing.T) {
	with(t, 100, func(t *testing.T, c *Coordinator, q *memoryqueue.Queue) {
		for i := range 3 {
			assert.Equal(t, i, must.Get(Get[int](t.Context(), scheduled(t, c, "echo", i)))(t))
		}
		assert.Len(t, q.Asked(), 4, "one for each, and the first")
		slow := scheduled(t, c, "slow", 7)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, c.Flush(t.Context()))
		assert.Less(t, time.Since(began), time.Second)
		assert.Equal(t, 7, must.Get(Get[int](t.Context(), slow))(t))
		slow = scheduled(t, c, "slow", 8)
		synctest.Wait()
		began = time.Now()
		other := scheduled(t, c, "echo", 9)
		require.NoError(t, c.Flush(t.Context()))
		assert.Zero(t, time.Since(began))
		assert.Equal(t, 9, must.Get(Get[int](t.Context(), other))(t))
		assert.Equal(t, 8, must.Get(Get[int](t.Context(), slow))(t))
	})
}

// A resource goes with the first closure that uses it, and is known by its ID until it is released.
func TestResources(t *testing.T) {
	with(t, 2, func(t *testing.T, c *Coordinator, q *memoryqueue.Queue) {
		data := must.Get(c.CreatePerWorkerResource("echo", 3))(t)
		for range 2 {
			assert.Equal(t, 3, must.Get(Get[int](t.Context(), scheduled(t, c, "echo", data)))(t))
		}
		c.Release(data)
		must.Get(Get[int](t.Context(), scheduled(t, c, "echo", 1)))(t)
		asked := q.Asked()
		assert.Equal(t, []uint64{data.resource.ID}, asked[len(asked)-1].Released)
	})
}

func TestTheFirstErrorIsReturnedOnce(t *testing.T) {
	with(t, 100, func(t *testing.T, c *Coordinator, _ *memoryqueue.Queue) {
		failed := scheduled(t, c, "fail")
		var e *closure.Error
		require.ErrorAs(t, c.Join(t.Context()), &e)
		assert.Equal(t, "ValueError", e.Kind)
		require.NoError(t, c.Join(t.Context()))
		_, err := failed.JSON(t.Context())
		require.ErrorAs(t, err, &e)
		_, err = c.Schedule(t.Context(), "echo", failed)
		require.ErrorIs(t, err, ErrRemoteValue)

		scheduled(t, c, "fail")
		for err = nil; err == nil; {
			synctest.Wait()
			_, err = c.Schedule(t.Context(), "echo", 1)
		}
		require.ErrorAs(t, err, &e)
		require.NoError(t, c.Join(t.Context()))
	})
}

func TestTheRunEnds(t *testing.T) {
	with(t, 100, func(t *testing.T, c *Coordinator, q *memoryqueue.Queue) {
		v := scheduled(t, c, "slow", 1)
		synctest.Wait()
		q.End("it is over")
		_, err := v.JSON(t.Context())
		require.ErrorContains(t, err, "the run has ended")
		require.Error(t, c.Join(t.Context()))
		_, err = c.Schedule(t.Context(), "echo", 1)
		require.Error(t, err)
		assert.False(t, errors.Is(err, context.Canceled))
		time.Sleep(time.Minute) // let the call start
	})
}
