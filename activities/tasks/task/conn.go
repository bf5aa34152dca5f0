package task

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// The transport of net/http passes every request through two other goroutines, which takes
// longer than a barrier does. Here requests are sent one after the other on a connection of
// their own, without other goroutines.

// tries is the time between retries of a request.
var tries = retry.Backoff{First: 5 * time.Millisecond, Most: 200 * time.Millisecond}

const (
	// maxIdle is how many idle connections are kept.
	maxIdle = 4
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 16 << 20
)

// pool keeps idle connections.
type pool struct {
	mu   sync.Mutex
	idle []*conn
}

// conn is a connection whose reads block their thread. A barrier takes microseconds, and Go's
// poller, which the processes of all tasks would use at the same time, takes longer.
type conn struct {
	*os.File
	in   *bufio.Reader
	out  []byte
	body []byte
	used bool // has had an answer before
}

// dial connects to a socket.
func dial(ctx context.Context, socket string) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	file, err := raw.(*net.UnixConn).File()
	if err != nil {
		return nil, err
	}
	file.Fd() // makes it blocking
	return &conn{File: file, in: bufio.NewReader(file)}, nil
}

// interrupt ends the exchange that is in progress, if there is one. The connection cannot be
// used afterwards.
func (c *conn) interrupt() {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}

func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c
	}
	return nil
}

func (p *pool) give(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, c)
		return
	}
	_ = c.Close()
}

// call sends a request until there is an answer, or ctx ends.
func (t *Task) call(ctx context.Context, method, path string, body []byte, out any) error {
	return t.callWith(ctx, method, path, func(b []byte) []byte { return append(b, body...) }, out)
}

// callWith is like call, but makes the body anew for each try.
func (t *Task) callWith(ctx context.Context, method, path string, body func([]byte) []byte, out any) error {
	for again := tries; ; {
		status, answer, reused, err := t.try(ctx, method, path, body)
		switch {
		case err == nil && status == http.StatusOK:
			if out == nil {
				return nil
			}
			if err := json.Unmarshal(answer, out); err != nil {
				return fmt.Errorf("the host's answer is from another version: %w", err)
			}
			return nil
		case err == nil:
			var f wire.Failure
			if json.Unmarshal(answer, &f) != nil || f.Error.Message == "" {
				return &APIError{Code: wire.CodeInternal, Message: fmt.Sprintf("the host answers with status %d: %.200s", status, answer)}
			}
			return asError(f.Error)
		case ctx.Err() != nil:
			return fmt.Errorf("%w (the host was asked at %s)", context.Cause(ctx), t.socket)
		case reused:
			continue // the idle connection may have been closed
		case !passes(err):
			return fmt.Errorf("the host cannot be asked: %w", err)
		}
		if ended := again.Sleep(ctx); ended != nil {
			return fmt.Errorf("%w (the host does not answer: %w)", ended, err)
		}
	}
}

// passes reports whether an error may pass, because the host worker is being restarted or is
// busy.
func passes(err error) bool {
	for _, e := range []error{
		fs.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EAGAIN,
		io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// try sends a request once.
func (t *Task) try(ctx context.Context, method, path string, body func([]byte) []byte) (status int, answer []byte, reused bool, err error) {
	c := t.pool.take()
	if c == nil {
		if c, err = dial(ctx, t.socket); err != nil {
			return 0, nil, false, err
		}
	}
	var stop func() bool
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, c.interrupt)
	}
	status, answer, keep, err := c.exchange(method, path, body)
	if stop != nil && !stop() {
		keep = false // the connection has been interrupted, or is about to be
	}
	reused = c.used
	if err != nil || !keep {
		_ = c.Close()
		return status, answer, reused, err
	}
	c.used = true
	t.pool.give(c)
	return status, answer, reused, nil
}

func (c *conn) exchange(method, path string, body func([]byte) []byte) (status int, answer []byte, keep bool, err error) {
	c.body = body(c.body[:0])
	b := append(c.out[:0], method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: task\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(c.body)), 10)
	b = append(b, "\r\n\r\n"...)
	b = append(b, c.body...)
	c.out = b
	if cap(c.body) > maxKept {
		c.out, c.body = nil, nil
	}
	// A host that refuses a request may answer and close before it has read all of it.
	_, sendErr := c.Write(b)
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, false, errors.Join(sendErr, err)
	}
	defer r.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	return r.StatusCode, answer, err == nil && sendErr == nil && !r.Close, err
}

// maxKept bounds the buffers of an idle connection.
const maxKept = 64 << 10
