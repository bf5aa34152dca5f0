package taskapi

import (
	"container/list"
	"fmt"
	"net"
	"os"
	"sync"
)

// maxConns is how many connections of one task are served at a time. Others wait
// in the kernel, and those of other tasks do not notice.
const maxConns = 512

// listener accepts a bounded number of connections of one task. Where all are
// taken, one that nobody uses at the moment is closed for the next: clients open
// another when they need it.
type listener struct {
	net.Listener
	endpoint *endpoint
	most     int

	mu     sync.Mutex
	change *sync.Cond
	open   int
	idle   *list.List // of *conn, the longest idle first
	closed bool
}

// conn is one connection of a task.
type conn struct {
	net.Conn
	listener *listener
	once     sync.Once
	idle     *list.Element
}

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
	out := &listener{Listener: l, endpoint: e, most: maxConns, idle: list.New()}
	out.change = sync.NewCond(&out.mu)
	return out, nil
}

func (l *listener) Accept() (net.Conn, error) {
	if err := l.makeRoom(); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		l.mu.Lock()
		l.open--
		l.mu.Unlock()
		return nil, err
	}
	return &conn{Conn: c, listener: l}, nil
}

// makeRoom waits until another connection may be open.
func (l *listener) makeRoom() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.most && !l.closed {
		if e := l.idle.Front(); e != nil {
			c := l.idle.Remove(e).(*conn)
			c.idle = nil
			l.mu.Unlock()
			_ = c.Close()
			l.mu.Lock()
			continue
		}
		l.change.Wait()
	}
	if l.closed {
		return net.ErrClosed
	}
	l.open++
	return nil
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
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case idle && c.idle == nil:
		c.idle = l.idle.PushBack(c)
		if l.open >= l.most {
			l.change.Signal()
		}
	case !idle && c.idle != nil:
		l.idle.Remove(c.idle)
		c.idle = nil
	}
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.setIdle(false)
		l := c.listener
		l.mu.Lock()
		l.open--
		l.change.Signal()
		l.mu.Unlock()
	})
	return err
}
