package coordinator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CO-01
func TestStopAPI(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		assert.False(t, c.ShouldStop())
		assert.False(t, waits(c, 10*time.Millisecond))
		require.NoError(t, c.RequestStop(nil))
		assert.True(t, c.ShouldStop())
		assert.True(t, waits(c, 10*time.Millisecond))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		assert.True(t, c.WaitForStop(ended), "a stop counts more than the end of the waiting")
	})
}

// CO-02
func TestStopAsync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		ask := make(chan struct{})
		go func() {
			<-ask
			time.Sleep(20 * time.Millisecond)
			assert.NoError(t, c.RequestStop(nil))
		}()
		assert.False(t, c.ShouldStop())
		assert.False(t, waits(c, 100*time.Millisecond))
		close(ask)
		assert.False(t, waits(c, 10*time.Millisecond))
		began := time.Now()
		assert.True(t, c.WaitForStop(t.Context()))
		assert.Equal(t, 10*time.Millisecond, time.Since(began))
		assert.True(t, c.ShouldStop())
	})
}

func TestTheContextEndsWithTheStop(t *testing.T) {
	c := New()
	ctx := c.Context()
	require.NoError(t, ctx.Err())
	require.NoError(t, c.RequestStop(errFirst))
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	assert.Same(t, errFirst, context.Cause(ctx))

	c.ClearStop()
	require.Error(t, ctx.Err(), "an ended context stays so")
	require.NoError(t, c.Context().Err())
	require.NoError(t, c.RequestStop(nil))
	assert.Same(t, context.Canceled, context.Cause(c.Context()))
}

// CO-10, SEED-62: by default only the end of the input is a clean stop.
func TestTheEndOfInputIsACleanStop(t *testing.T) {
	for _, err := range []error{io.EOF, fmt.Errorf("shard 3: %w", io.EOF)} {
		c := New()
		c.Go("reader", func(context.Context) error { return err })
		require.NoError(t, c.Join(), "%v", err)
		assert.True(t, c.ShouldStop())
		require.NoError(t, c.Err())
	}
	c := New()
	c.Go("reader", func(context.Context) error {
		_, err := bufio.NewReader(strings.NewReader("")).ReadByte()
		return err
	})
	require.NoError(t, c.Join(), "as the standard library says it")
	assert.True(t, c.ShouldStop())

	c = New()
	c.Go("reader", func(context.Context) error { return io.ErrUnexpectedEOF })
	require.ErrorIs(t, c.Join(), io.ErrUnexpectedEOF)
}

// CO-11, SEED-62: the caller's own kinds replace the default.
func TestCleanStops(t *testing.T) {
	result := func(err error, opts ...Option) error {
		c := New(opts...)
		c.Go("reader", func(context.Context) error { return err })
		got := c.Join()
		assert.True(t, c.ShouldStop())
		return got
	}
	wrapped := fmt.Errorf("wrapped: %w", errFirst)
	require.NoError(t, result(wrapped, CleanStop(errSecond, errFirst)))
	require.ErrorIs(t, result(io.EOF, CleanStop(errFirst)), io.EOF, "not clean any more")
	require.NoError(t, result(io.EOF, CleanStop(errFirst, io.EOF)))
	require.ErrorIs(t, result(io.EOF, CleanStop()), io.EOF, "nothing is clean")
	isFirst := func(err error) bool { return err.Error() == "First" }
	require.NoError(t, result(errFirst, CleanStopFunc(isFirst)))
	require.ErrorIs(t, result(io.EOF, CleanStopFunc(isFirst)), io.EOF)
}

// SEED-63: only the error that stops the coordinator is recorded; later ones are logged.
func TestAnErrorAfterThePlainStopIsNotRecorded(t *testing.T) {
	c, logged := newLogged()
	require.NoError(t, c.RequestStop(nil))
	require.NoError(t, c.RequestStop(errTooLate))
	require.NoError(t, c.Err())
	require.NoError(t, c.Join())
	assert.Equal(t, `level=INFO msg="Error reported to Coordinator after the stop; Join does not return it" error="too late"`, logged())

	c, logged = newLogged()
	require.NoError(t, c.RequestStop(errFirst))
	require.NoError(t, c.RequestStop(nil))
	assert.Same(t, errFirst, c.Err())
	assert.Equal(t, `level=INFO msg="Error reported to Coordinator" error=First`, logged())
}

// D-17: an error need not be raised to be recorded.
func TestANewErrorIsRecorded(t *testing.T) {
	c := New()
	require.NoError(t, c.RequestStop(errors.New("made here")))
	require.EqualError(t, c.Join(), "made here")
}

// CO-14, CO-15, SEED-64
func TestRequestStopAfterJoin(t *testing.T) {
	c := New()
	require.NoError(t, c.Join())
	assert.True(t, c.Joined())
	require.Same(t, errFirst, c.RequestStop(errFirst), "handed back")
	assert.False(t, c.ShouldStop())
	require.NoError(t, c.Err())
	require.NoError(t, c.RequestStop(io.EOF), "a clean stop is not, and stops")
	assert.True(t, c.ShouldStop())
	require.Same(t, errFirst, c.RequestStop(errFirst))

	c.ClearStop()
	assert.False(t, c.Joined())
	require.NoError(t, c.RequestStop(errFirst))
	require.Same(t, errFirst, c.Join())
}

// SEED-66
func TestTheErrorStaysUntilCleared(t *testing.T) {
	c := New()
	require.NoError(t, c.RequestStop(errFirst))
	for range 3 {
		require.Same(t, errFirst, c.Join())
		require.Same(t, errFirst, c.Err())
	}
	c.ClearStop()
	require.NoError(t, c.Err())
	require.NoError(t, c.Join())
}

// SEED-65, CO-13: clearing resets the stop, the error and that it was joined.
func TestClearStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		failing(t, c, "first", time.Millisecond, errFirst)
		require.True(t, c.WaitForStop(t.Context()))
		require.Same(t, errFirst, c.Join())
		c.ClearStop()
		assert.False(t, c.ShouldStop())
		assert.False(t, c.Joined())
		require.NoError(t, c.Err())

		second := failing(t, c, "second", time.Second, errSecond)
		require.Same(t, errSecond, c.Join(Threads(second)))
	})
}

// A waiting caller is not lost when a coordinator is cleared that was never stopped.
func TestClearStopWithoutAStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := New()
		seen := make(chan bool)
		go func() { seen <- c.WaitForStop(t.Context()) }()
		synctest.Wait()
		c.ClearStop()
		require.NoError(t, c.RequestStop(nil))
		assert.True(t, <-seen)
	})
}

// Many threads request a stop at once: one error is recorded, and all have stopped.
func TestStopsAtTheSameTime(t *testing.T) {
	c, logged := newLogged()
	gate := make(chan struct{})
	for i := range 100 {
		c.Go(fmt.Sprint("t", i), func(context.Context) error {
			<-gate
			return fmt.Errorf("error %d", i)
		})
	}
	close(gate)
	err := c.Join()
	require.ErrorContains(t, err, "error ")
	assert.Equal(t, 99, strings.Count(logged(), "after the stop"))
	assert.Contains(t, strings.Split(logged(), "\n"), fmt.Sprintf("level=INFO msg=\"Error reported to Coordinator\" error=%q", err))
}

var (
	errFirst   = errors.New("First")
	errTooLate = errors.New("too late")
	errSecond  = errors.New("Second")
)

// bubble runs a test in which time passes only while all goroutines wait, and which fails if a
// goroutine is left.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// newLogged returns a coordinator and a function that returns its log.
func newLogged(opts ...Option) (*Coordinator, func() string) {
	out := &lockedBuffer{}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return New(append(opts, Logger(log))...), out.String
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.buf.String())
}

// sleeper returns a thread that is not registered. It ends after d, regardless of requests, or
// with the test if that is earlier.
func sleeper(t *testing.T, name string, d time.Duration) *Thread {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-time.After(d):
		case <-t.Context().Done():
		}
	}()
	return NewThread(name, done)
}

// failing returns a thread that reports err after d.
func failing(t *testing.T, c *Coordinator, name string, d time.Duration, err error) *Thread {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(d)
		if got := c.RequestStop(err); got != nil {
			t.Errorf("%s got its error back: %v", name, got)
		}
	}()
	return NewThread(name, done)
}

func waits(c *Coordinator, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return c.WaitForStop(ctx)
}

// stopped returns a coordinator that was stopped without a reason.
func stopped(t *testing.T) *Coordinator {
	t.Helper()
	c := New()
	require.NoError(t, c.RequestStop(nil))
	return c
}
