package coordinator

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CO-16, CO-17, CO-18: the arguments of a target are the variables of a function here. The
// looper counts down and then requests a stop.
func TestLooperCountsDown(t *testing.T) {
	for _, interval := range []time.Duration{0, time.Minute} {
		bubble(t, func(t *testing.T) {
			c := New()
			left := 3
			countDown := func(c *Coordinator, left *int) func(context.Context) error {
				return func(context.Context) error {
					if *left--; *left == 0 {
						return c.RequestStop(nil)
					}
					return nil
				}
			}
			began := time.Now()
			th := c.Loop(Looper{Name: "countdown", Interval: interval, Run: countDown(c, &left)})
			require.NoError(t, c.Join(Threads(th)))
			assert.Zero(t, left)
			assert.Equal(t, 2*interval, time.Since(began))
		})
	}
}

// SEED-68: a looper registers itself. The compiler checks that it has a coordinator and a
// target; other mistakes are errors of the looper.
func TestLooperThatCannotRun(t *testing.T) {
	c := New()
	c.Loop(Looper{Name: "saver", Interval: time.Second})
	require.EqualError(t, c.Join(), `looper "saver": Run is not set: it is the function to call`)

	c = New()
	c.Loop(Looper{Name: "saver", Interval: -time.Second, Run: func(context.Context) error { return nil }})
	require.EqualError(t, c.Join(), `looper "saver": Interval is -1s: must be 0 (calls back to back) or more`)
}

// calls records when each call of a looper began.
func calls(interval time.Duration, n int, durations map[int]time.Duration) []time.Duration {
	c := New()
	began := time.Now()
	var at []time.Duration
	c.Loop(Looper{Name: "looper", Interval: interval, Run: func(context.Context) error {
		at = append(at, time.Since(began))
		time.Sleep(durations[len(at)])
		if len(at) == n {
			return io.EOF
		}
		return nil
	}})
	if err := c.Join(); err != nil {
		panic(err)
	}
	return at
}

// SEED-69: the beats are at fixed times from the start, and missed ones are made up back to
// back.
func TestLooperSchedule(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *testing.T) {
		assert.Equal(t, []time.Duration{0, 100 * ms, 450 * ms, 450 * ms, 450 * ms, 500 * ms, 600 * ms},
			calls(100*ms, 7, map[int]time.Duration{2: 350 * ms}))
	})
	bubble(t, func(t *testing.T) {
		assert.Equal(t, []time.Duration{0, 100 * ms, 200 * ms}, calls(100*ms, 3, map[int]time.Duration{1: 99 * ms, 2: 100 * ms}))
	})
	bubble(t, func(t *testing.T) { // no interval
		assert.Equal(t, []time.Duration{0, 7 * ms, 7 * ms}, calls(0, 3, map[int]time.Duration{1: 7 * ms}))
	})
}

// SEED-69: the start hook runs before the first beat and is not a part of it.
func TestLooperScheduleBeginsAfterStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		began := time.Now()
		var at []time.Duration
		c.Loop(Looper{
			Name: "looper", Interval: time.Second,
			Start: func(context.Context) error { time.Sleep(2500 * time.Millisecond); return nil },
			Run: func(context.Context) error {
				if at = append(at, time.Since(began)); len(at) == 2 {
					return io.EOF
				}
				return nil
			},
		})
		require.NoError(t, c.Join())
		assert.Equal(t, []time.Duration{2500 * time.Millisecond, 3500 * time.Millisecond}, at)
	})
}

// Steps of the clock do not matter, because the compared times keep their monotonic reading.
func TestLooperScheduleIsMonotonic(t *testing.T) {
	s := newSchedule(time.Microsecond)
	for range 3 {
		assert.Contains(t, s.next.String(), " m=")
		require.True(t, s.await(t.Context()))
	}
}

// A stop ends the wait for the next beat.
func TestLooperStopsBetweenBeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		n := 0
		c.Loop(Looper{Name: "looper", Interval: time.Hour, Run: func(context.Context) error { n++; return nil }})
		time.Sleep(90 * time.Minute)
		began := time.Now()
		require.NoError(t, c.RequestStop(nil))
		require.NoError(t, c.Join())
		assert.Zero(t, time.Since(began))
		assert.Equal(t, 2, n)
	})
}

// recorder returns a looper that records its calls.
func recorder(log *[]string, run func(context.Context) error) Looper {
	note := func(what string) { *log = append(*log, what) }
	return Looper{
		Name:  "recorder",
		Start: func(context.Context) error { note("start"); return nil },
		Run:   func(ctx context.Context) error { note("run"); return run(ctx) },
		Stop:  func() error { note("stop"); return nil },
	}
}

// SEED-70: the order is start, calls, stop, and there is no stop after a call that failed.
func TestLooperHooks(t *testing.T) {
	hooks := func(c *Coordinator, run func(context.Context) error) string {
		var log []string
		c.Loop(recorder(&log, run))
		_ = c.Join()
		return strings.Join(log, " ")
	}
	c := New()
	assert.Equal(t, "start run stop", hooks(c, func(context.Context) error { return c.RequestStop(nil) }))
	assert.Equal(t, "start run", hooks(New(), func(context.Context) error { return errFirst }))
	assert.Equal(t, "start run", hooks(New(), func(context.Context) error { return io.EOF }), "a clean stop, too")
	assert.Equal(t, "start run", hooks(New(), func(context.Context) error { return panics("boom") }))

	c = New()
	assert.Equal(t, "start run stop", hooks(c, func(ctx context.Context) error {
		if err := c.RequestStop(errFirst); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}), "it was only told to stop")
	assert.Same(t, errFirst, c.Err())
}

// SEED-70: after a stop there are no calls.
func TestLooperStartedAfterTheStop(t *testing.T) {
	for _, interval := range []time.Duration{0, time.Second} {
		c := stopped(t)
		var log []string
		l := recorder(&log, func(context.Context) error { return errors.New("it was called") })
		l.Interval = interval
		c.Loop(l)
		require.NoError(t, c.Join())
		assert.Equal(t, []string{"start", "stop"}, log)
	}
}

// Errors of the hooks are reported, and if Start fails, nothing else is called.
func TestLooperHooksThatFail(t *testing.T) {
	c := New()
	var log []string
	l := recorder(&log, func(context.Context) error { return nil })
	l.Start = func(context.Context) error { return errFirst }
	c.Loop(l)
	require.Same(t, errFirst, c.Join())
	assert.Empty(t, log)

	bubble(t, func(t *testing.T) {
		c, logged := newLogged()
		l := recorder(&log, func(ctx context.Context) error { <-ctx.Done(); return nil })
		l.Stop = func() error { return errSecond }
		c.Loop(l)
		synctest.Wait()
		require.NoError(t, c.RequestStop(nil))
		require.NoError(t, c.Join(), "it stopped before")
		assert.Contains(t, logged(), "after the stop; Join does not return it")
	})
}
