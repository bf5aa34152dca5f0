package coordinator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CO-03
func TestJoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		threads := []*Thread{sleeper(t, "a", 10*time.Millisecond), sleeper(t, "b", 20*time.Millisecond), sleeper(t, "c", 10*time.Millisecond)}
		require.NoError(t, c.Join(Threads(threads...)))
		for _, th := range threads {
			assert.False(t, th.Alive())
		}
		assert.False(t, c.ShouldStop())
	})
}

// CO-04
func TestJoinAllRegistered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		var threads []*Thread
		for i := range 3 {
			threads = append(threads, c.Go(fmt.Sprint(i), func(context.Context) error {
				time.Sleep(time.Duration(i) * time.Second)
				return nil
			}))
		}
		require.NoError(t, c.Join())
		for _, th := range threads {
			assert.False(t, th.Alive())
		}
	})
}

// CO-05, SEED-65: join waits for the union, in which a thread may be both registered and
// passed.
func TestJoinSomeRegistered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		a, b, d := sleeper(t, "a", time.Second), sleeper(t, "b", 2*time.Second), sleeper(t, "d", 3*time.Second)
		c.Register(a, b)
		c.Register(a)
		require.NoError(t, c.Join(Threads(d), Threads(a, d)))
		for _, th := range []*Thread{a, b, d} {
			assert.False(t, th.Alive())
		}
	})
}

// CO-06
func TestJoinGraceExpires(t *testing.T) {
	for _, grace := range []time.Duration{0, 1, 2 * time.Millisecond, time.Second} {
		bubble(t, func(t *testing.T) {
			c := stopped(t)
			c.Register(sleeper(t, "slow", 10*time.Second))
			began := time.Now()
			err := c.Join(Grace(grace))
			assert.Equal(t, max(grace, time.Millisecond), time.Since(began))
			require.EqualError(t, err, "Coordinator stopped with threads still running: slow")
			var still *StillRunningError
			require.ErrorAs(t, err, &still)
			assert.Equal(t, []string{"slow"}, still.Threads)
			assert.True(t, c.Joined())
		})
	}
}

// CO-07, SEED-61: the stragglers are logged instead.
func TestJoinIgnoresLiveThreads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, logged := newLogged()
		require.NoError(t, c.RequestStop(nil))
		slow := sleeper(t, "slow", 10*time.Second)
		c.Register(slow)
		require.NoError(t, c.Join(Grace(time.Second), IgnoreLive()))
		assert.True(t, slow.Alive())
		assert.Equal(t, `level=INFO msg="Coordinator stopped with threads still running: slow"`, logged())
	})
}

// SEED-59: without a stop there is no limit, and no grace passes.
func TestJoinWithoutAStopHasNoLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		began := time.Now()
		require.NoError(t, c.Join(Threads(sleeper(t, "slow", 1000*time.Hour)), Grace(time.Nanosecond)))
		assert.Equal(t, 1000*time.Hour, time.Since(began))
	})
}

// SEED-59: join does not poll. The original takes 1.0 s and 2.0 s for these.
func TestJoinReturnsWithTheLastThread(t *testing.T) {
	for _, d := range []time.Duration{200 * time.Millisecond, 1200 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			began := time.Now()
			require.NoError(t, New().Join(Threads(sleeper(t, "a", time.Millisecond), sleeper(t, "b", d))))
			assert.Equal(t, d, time.Since(began))
		})
	}
	bubble(t, func(t *testing.T) {
		c := stopped(t)
		began := time.Now()
		require.NoError(t, c.Join(Threads(sleeper(t, "a", 0), sleeper(t, "b", 700*time.Millisecond))))
		assert.Equal(t, 700*time.Millisecond, time.Since(began), "after a stop neither")
	})
}

// SEED-59: the grace is 120 s, counted from the stop, or from Join if that is later.
func TestTheGraceOfJoin(t *testing.T) {
	took := func(t *testing.T, stopAfter, joinAfter time.Duration, opts ...JoinOption) time.Duration {
		c := New()
		c.Register(sleeper(t, "slow", time.Hour))
		failing(t, c, "stopper", stopAfter, nil)
		time.Sleep(joinAfter)
		synctest.Wait()
		began := time.Now()
		require.EqualError(t, c.Join(opts...), "Coordinator stopped with threads still running: slow")
		return time.Since(began)
	}
	bubble(t, func(t *testing.T) { assert.Equal(t, 120*time.Second, took(t, 0, 0)) })
	bubble(t, func(t *testing.T) { assert.Equal(t, 420*time.Second, took(t, 300*time.Second, 0)) })
	bubble(t, func(t *testing.T) { assert.Equal(t, 120*time.Second, took(t, 0, 300*time.Second)) })
	bubble(t, func(t *testing.T) { assert.Equal(t, 12*time.Second, took(t, 2*time.Second, 0, Grace(10*time.Second))) })
}

// SEED-60: a grace of zero still means a millisecond, and a negative one means no wait.
func TestJoinWithNoGrace(t *testing.T) {
	join := func(t *testing.T, lives, grace time.Duration) error {
		c := stopped(t)
		return c.Join(Threads(sleeper(t, "a", lives)), Grace(grace))
	}
	bubble(t, func(t *testing.T) { require.NoError(t, join(t, time.Millisecond/2, 0)) })
	bubble(t, func(t *testing.T) { require.Error(t, join(t, 2*time.Millisecond, 0)) })
	bubble(t, func(t *testing.T) { require.Error(t, join(t, time.Millisecond/2, -1)) })
	bubble(t, func(t *testing.T) {
		c := stopped(t)
		ended := sleeper(t, "a", 0)
		<-ended.Done()
		require.NoError(t, c.Join(Threads(ended), Grace(-1)))
	})
}

// SEED-61: stragglers are named in the order of registration, then in the order of the call,
// each once.
func TestStragglersAreNamedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := stopped(t)
		var passed []*Thread
		for i := range 20 {
			name := fmt.Sprintf("t%02d", i)
			switch {
			case i < 10:
				slow := sleeper(t, name, time.Hour)
				c.Register(slow, sleeper(t, "quick", 0), slow)
				passed = append([]*Thread{slow}, passed...)
			default:
				passed = append(passed, sleeper(t, name, time.Hour))
			}
		}
		require.EqualError(t, c.Join(Threads(passed...), Grace(time.Second)),
			"Coordinator stopped with threads still running: t00 t01 t02 t03 t04 t05 t06 t07 t08 t09 t10 t11 t12 t13 t14 t15 t16 t17 t18 t19")
	})
}

// SEED-61: the recorded error is returned instead of the stragglers.
func TestTheErrorCountsMoreThanStragglers(t *testing.T) {
	for _, opts := range [][]JoinOption{{}, {IgnoreLive()}} {
		bubble(t, func(t *testing.T) {
			c := New()
			c.Register(sleeper(t, "slow", time.Hour))
			require.NoError(t, c.RequestStop(errFirst))
			require.Same(t, errFirst, c.Join(append(opts, Grace(time.Second))...))
		})
	}
}

// CO-08, CO-09: join returns the error that was reported first.
func TestJoinReturnsTheFirstError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		threads := []*Thread{
			failing(t, c, "late", 50*time.Millisecond, errTooLate),
			failing(t, c, "first", 10*time.Millisecond, errFirst),
		}
		require.Same(t, errFirst, c.Join(Threads(threads...)))
		for _, th := range threads {
			assert.False(t, th.Alive(), "it waits for the others all the same")
		}
	})
}

// SEED-65: threads that are registered while Join waits are not waited for, and are
// forgotten.
func TestThreadsRegisteredDuringJoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		c.Go("parent", func(context.Context) error {
			time.Sleep(time.Second)
			c.Register(sleeper(t, "child", time.Hour))
			return nil
		})
		began := time.Now()
		require.NoError(t, c.Join())
		require.NoError(t, c.RequestStop(nil))
		require.NoError(t, c.Join())
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// SEED-65: Join empties the registry.
func TestJoinForgetsThreads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := stopped(t)
		c.Register(sleeper(t, "slow", time.Hour))
		require.Error(t, c.Join(Grace(0)))
		require.NoError(t, c.Join(Grace(0)))
	})
}

// Threads that have ended are not kept.
func TestTheRegistryHoldsTheLiving(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		first := c.Go("first", func(ctx context.Context) error { <-ctx.Done(); return nil })
		for range 10_000 {
			<-c.Go("short", func(context.Context) error { return nil }).Done()
		}
		assert.Less(t, len(c.threads), 100)
		assert.Same(t, first, c.threads[0])
		require.NoError(t, c.RequestStop(nil))
		require.NoError(t, c.Join())
	})
}

func TestSeveralJoinsAtTheSameTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		c.Go("worker", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		results := make(chan error)
		for range 5 {
			go func() { results <- c.Join() }()
		}
		synctest.Wait()
		require.NoError(t, c.RequestStop(errFirst))
		for range 5 {
			require.Same(t, errFirst, <-results)
		}
	})
}
