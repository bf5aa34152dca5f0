package taskapi

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// acceptAgain is the pause after an error of Accept.
	acceptAgain = 100 * time.Millisecond
	warnAgain   = time.Minute
)

// listener accepts a bounded number of connections of one task for net/http. If all are taken,
// it closes an idle one for the next: clients open another when they need it.
// netutil.LimitListener does not do that, and its bound cannot change with the number of tasks.
type listener struct {
	net.Listener
	server   *Server
	endpoint *endpoint

	mu     sync.Mutex
	change *sync.Cond
	most   int
	open   map[*conn]struct{}
	closed bool
}

// listen binds a socket that replaces any file at the path.
func (s *Server) listen(e *endpoint) (*listener, error) {
	fresh := e.path + ".new"
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
	}
	l.SetUnlinkOnClose(false)
	if u := e.task.User; u != nil {
		// Until then [endpoint.serves] refuses others.
		err := os.Chmod(fresh, 0o600)
		if err == nil {
			err = os.Lchown(fresh, int(u.UID), int(u.GID))
		}
		if err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
		}
	}
	// The rename leaves no moment without a socket at the path.
	if err := os.Rename(fresh, e.path); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
	}
	out := &listener{Listener: l, server: s, endpoint: e, most: minConns, open: map[*conn]struct{}{}}
	out.change = sync.NewCond(&out.mu)
	return out, nil
}

// Accept returns the next connection, once there is room for one more.
func (l *listener) Accept() (net.Conn, error) {
	var warned time.Time
	for {
		l.awaitRoom()
		raw, err := l.Listener.Accept()
		switch {
		case err == nil && !l.endpoint.serves(raw):
			_ = raw.Close()
			continue
		case err == nil:
			return l.keep(raw)
		case errors.Is(err, net.ErrClosed):
			return nil, err
		}
		// For example, there may be too many open files: the error may pass when others close
		// theirs.
		if time.Since(warned) > warnAgain {
			warned = time.Now()
			l.server.Log.Warn("a task cannot reach its host at the moment", zap.String("task", l.endpoint.id.Task), zap.Error(err))
		}
		l.mu.Lock()
		l.closeIdle()
		l.mu.Unlock()
		time.Sleep(acceptAgain)
	}
}

// awaitRoom waits until another connection may be open.
func (l *listener) awaitRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.most && !l.closed {
		if !l.closeIdle() {
			l.change.Wait()
		}
	}
}

// serves reports whether the peer of a connection is the user of the task, or has the same
// privileges as this process. Other users who have obtained a socket must not act on the run.
func (e *endpoint) serves(raw net.Conn) bool {
	peer := peerOf(raw)
	if peer == nil {
		return false
	}
	u := e.view().User
	return peer.Uid == 0 || int(peer.Uid) == os.Geteuid() || u != nil && peer.Uid == u.UID
}

// keep registers an accepted connection.
func (l *listener) keep(raw net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	c := &conn{Conn: raw, listener: l}
	l.open[c] = struct{}{}
	return c, nil
}

// setMost changes the number of connections that are served at a time. If there are more, the
// others stay until they are idle.
func (l *listener) setMost(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
	l.change.Broadcast()
}

// closeIdle closes the connection that has been idle longest, and reports whether there was
// one. l.mu must be held.
func (l *listener) closeIdle() bool {
	var found *conn
	for c := range l.open {
		if !c.idle.IsZero() && (found == nil || c.idle.Before(found.idle)) {
			found = c
		}
	}
	if found == nil {
		return false
	}
	delete(l.open, found)
	_ = found.Conn.Close()
	return true
}

func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}
