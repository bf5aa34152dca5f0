package coordinator

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CO-12: an error ends in the scope, which does not return it.
func TestDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		scope := func(name string, d time.Duration, err error) *Thread {
			done := make(chan struct{})
			go func() {
				defer close(done)
				assert.NoError(t, c.Do(func() error {
					time.Sleep(d)
					return err
				}))
			}()
			return NewThread(name, done)
		}
		first, late := scope("first", 10*time.Millisecond, errFirst), scope("late", 50*time.Millisecond, errTooLate)
		require.Same(t, errFirst, c.Join(Threads(first, late)))
	})
	c := New()
	require.NoError(t, c.Do(func() error { return nil }))
	assert.False(t, c.ShouldStop(), "a normal end stops nothing")
	require.NoError(t, c.Do(func() error { return io.EOF }))
	require.NoError(t, c.Join())
	assert.True(t, c.ShouldStop())
}

func panics(value any) error { panic(value) }

// SEED-67: the scope catches panics, too, and they keep their stack.
func TestDoTakesPanics(t *testing.T) {
	c := New()
	require.NoError(t, c.Do(func() error { return panics("boom") }))
	err := c.Join()
	var p *PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "boom", p.Value)
	assert.Contains(t, string(p.Stack), "coordinator.panics(")
	assert.Contains(t, err.Error(), "panic: boom\n\n")
	assert.Contains(t, err.Error(), "scope_test.go:")

	c = New()
	require.NoError(t, c.Do(func() error { return panics(errFirst) }))
	require.ErrorIs(t, c.Join(), errFirst)

	c = New()
	require.NoError(t, c.Do(func() error { return panics(nil) }))
	var nilPanic *runtime.PanicNilError
	require.ErrorAs(t, c.Join(), &nilPanic)

	c = New()
	require.NoError(t, c.Do(func() error { return panics(io.EOF) }))
	require.ErrorIs(t, c.Join(), io.EOF, "a panic is never a clean stop")
}

// SEED-67: the scope also catches the end of the goroutine, which still ends.
func TestDoTakesTheEndOfTheGoroutine(t *testing.T) {
	c := New()
	th := c.Go("worker", func(context.Context) error {
		runtime.Goexit()
		return nil
	})
	require.Same(t, ErrGoexit, c.Join())
	assert.False(t, th.Alive())
}

// After Join, the scope returns errors.
func TestDoAfterJoin(t *testing.T) {
	c := New()
	require.NoError(t, c.Join())
	require.Same(t, errFirst, c.Do(func() error { return errFirst }))
	var p *PanicError
	require.ErrorAs(t, c.Do(func() error { return panics("boom") }), &p)
	require.NoError(t, c.Do(func() error { return io.EOF }))
}

// CO-12, for goroutines that the coordinator starts.
func TestGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		saw := make(chan error, 1)
		other := c.Go("other", func(ctx context.Context) error {
			<-ctx.Done()
			saw <- context.Cause(ctx)
			return ctx.Err()
		})
		assert.Equal(t, "other", other.Name())
		assert.True(t, other.Alive())
		c.Go("failing", func(context.Context) error { return panics("boom") })
		require.ErrorContains(t, c.Join(), "panic: boom")
		require.ErrorContains(t, <-saw, "panic: boom")
	})
}

// A thread that returns its context's error has only obeyed the stop.
func TestTheContextsErrorIsNoNews(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, logged := newLogged()
		for _, err := range []error{context.Canceled, errFirst} {
			c.Go("worker", func(ctx context.Context) error {
				<-ctx.Done()
				return errors.Join(errors.New("while reading"), err)
			})
		}
		require.NoError(t, c.RequestStop(errFirst))
		require.Same(t, errFirst, c.Join())
		assert.Equal(t, `level=INFO msg="Error reported to Coordinator" error=First`, logged())
	})
	c := New()
	c.Go("worker", func(context.Context) error { return context.Canceled })
	require.ErrorIs(t, c.Join(), context.Canceled, "before a stop it is an error like another")
}

// An error of a straggler is logged, and does not disturb later work.
func TestStragglersThatFail(t *testing.T) {
	for _, clear := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			c, logged := newLogged()
			release := make(chan struct{})
			straggler := c.Go("straggler", func(context.Context) error {
				<-release
				return errTooLate
			})
			quiet := c.Go("quiet", func(ctx context.Context) error {
				<-release
				return ctx.Err()
			})
			require.NoError(t, c.RequestStop(nil))
			require.NoError(t, c.Join(Grace(time.Second), IgnoreLive()))
			if clear {
				c.ClearStop()
			}
			close(release)
			<-straggler.Done()
			<-quiet.Done()
			synctest.Wait()
			assert.Equal(t, !clear, c.ShouldStop())
			require.NoError(t, c.Err())
			assert.Equal(t, `level=INFO msg="Coordinator stopped with threads still running: straggler quiet"
level=ERROR msg="A thread that outlived its Coordinator failed" thread=straggler error="too late"`, logged())
		})
	}
}
