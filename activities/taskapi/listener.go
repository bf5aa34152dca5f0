package taskapi

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// listener accepts a bounded number of connections of one task. Where all are
// taken, one that nobody uses at the moment is closed for the next: clients open
// another when they need it.
type listener struct {
	net.Listener
	endpoint *endpoint

	mu     sync.Mutex
	change *sync.Cond
	most   int
	open   map[*conn]struct{}
	closed bool
	// full says that somebody waits for a connection to become idle.
	full atomic.Bool
}

// conn is one connection of a task.
type conn struct {
	net.Conn
	listener *listener
	// in has what was read and belongs to the next request.
	in *bufio.Reader
	// forget has the server not close the connection when it is closed.
	forget func() bool
	// idle is since when nobody uses it, by the clock of started; 0: in use.
	idle atomic.Int64
}

// started is what times of idle connections count from.
var started = time.Now()

// listen binds a socket in the place of whatever is at the path.
func listen(e *endpoint) (*listener, error) {
	fresh := e.path + ".new"
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
	}
	l.SetUnlinkOnClose(false)
	// Clients never find nothing there.
	if err := os.Rename(fresh, e.path); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
	}
	out := &listener{Listener: l, endpoint: e, most: minConns, open: map[*conn]struct{}{}}
	out.change = sync.NewCond(&out.mu)
	return out, nil
}

// accept returns the next connection, once there may be one more.
func (l *listener) accept() (*conn, error) {
	if err := l.makeRoom(); err != nil {
		return nil, err
	}
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, listener: l, in: bufio.NewReaderSize(raw, maxQuick)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	l.open[c] = struct{}{}
	return c, nil
}

// makeRoom waits until another connection may be open.
func (l *listener) makeRoom() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.most && !l.closed {
		l.full.Store(true)
		if c := l.longestIdle(); c != nil {
			delete(l.open, c)
			_ = c.Conn.Close()
			continue
		}
		l.change.Wait()
	}
	l.full.Store(false)
	if l.closed {
		return net.ErrClosed
	}
	return nil
}

// setMost changes how many connections are served at a time. Where there are more,
// they stay until they are idle.
func (l *listener) setMost(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
	l.change.Broadcast()
}

// closeIdle closes the connection that was idle for longest, if there is one.
func (l *listener) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.longestIdle(); c != nil {
		delete(l.open, c)
		_ = c.Conn.Close()
	}
}

func (l *listener) longestIdle() (found *conn) {
	least := int64(0)
	for c := range l.open {
		if since := c.idle.Load(); since != 0 && (found == nil || since < least) {
			found, least = c, since
		}
	}
	return found
}

func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// setIdle notes whether a connection is between two requests.
func (c *conn) setIdle(idle bool) {
	if !idle {
		c.idle.Store(0)
		return
	}
	c.idle.Store(int64(time.Since(started)))
	if l := c.listener; l.full.Load() {
		l.mu.Lock()
		l.change.Signal()
		l.mu.Unlock()
	}
}

// Read reads what is left of the reader first.
func (c *conn) Read(b []byte) (int, error) {
	if c.in.Buffered() > 0 {
		return c.in.Read(b)
	}
	return c.Conn.Read(b)
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.forget()
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.change.Signal()
	return err
}
