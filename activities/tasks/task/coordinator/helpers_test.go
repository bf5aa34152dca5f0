package coordinator

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
