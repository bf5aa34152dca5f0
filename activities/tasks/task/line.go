package task

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxIdle is the number of idle connections that are kept.
const maxIdle = 4

// lines keeps idle connections for arrivals at barriers; see [wire.ArriveLine].
type lines struct {
	mu   sync.Mutex
	idle []*line
}

// line is a connection whose reads block their thread. A barrier takes microseconds, and Go's
// poller, which the processes of all tasks would use at the same time, takes longer.
type line struct {
	*os.File
	in   *bufio.Reader
	used bool // an arrival was answered on it before
}

// dialLine connects to a socket.
func dialLine(ctx context.Context, socket string) (*line, error) {
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
	return &line{File: file, in: bufio.NewReader(file)}, nil
}

func (l *lines) take() *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	c := l.idle[n-1]
	l.idle = l.idle[:n-1]
	return c
}

func (l *lines) give(c *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < maxIdle {
		c.used = true
		l.idle = append(l.idle, c)
		return
	}
	_ = c.Close()
}

// arrive sends an arrival once, and returns the answer.
func (t *Task) arrive(ctx context.Context, arrival []byte) (answer []byte, reused bool, err error) {
	c := t.lines.take()
	if c == nil {
		if c, err = dialLine(ctx, t.socket); err != nil {
			return nil, false, err
		}
	}
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, c.interrupt)
	}
	// A host that refuses an arrival may answer and close before it has read all of it.
	_, sent := c.Write(append(arrival, '\n'))
	answer, err = c.in.ReadBytes('\n')
	if reused = c.used; stop() && err == nil && sent == nil {
		t.lines.give(c)
		return answer, reused, nil
	}
	// It has been interrupted, or is about to be.
	_ = c.Close()
	if err != nil {
		err = errors.Join(sent, err)
	}
	return answer, reused, err
}

// interrupt ends the exchange that is in progress.
func (l *line) interrupt() {
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}
