package taskapi

import (
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// maxConns limits how many of a task's connections are served at a time. The rest wait in the
// kernel, without affecting other tasks.
const maxConns = 512

// listener accepts a task's connections for net/http.
type listener struct {
	net.Listener
	server   *Server
	endpoint *endpoint
	// slots contains an element for each connection that is open or about to be accepted.
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

// listen binds a socket, replacing any file at the path.
func (s *Server) listen(e *endpoint) (*listener, error) {
	fresh := e.path + ".new"
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
	}
	l.SetUnlinkOnClose(false)
	if u := e.task.User; u != nil {
		// Until then, [endpoint.serves] refuses other users.
		err := os.Chmod(fresh, 0o600)
		if err == nil {
			err = os.Lchown(fresh, int(u.UID), int(u.GID))
		}
		if err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
		}
	}
	// The rename keeps a socket at the path at every moment.
	if err := os.Rename(fresh, e.path); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("the socket of %s: %w", e.id.Task, err)
	}
	return &listener{Listener: l, server: s, endpoint: e, slots: make(chan struct{}, maxConns), closed: make(chan struct{})}, nil
}

// Accept returns the next connection once a slot is free.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		raw, err := l.Listener.Accept()
		switch {
		case err != nil:
			<-l.slots
			return nil, err
		case l.endpoint.serves(raw):
			return &conn{Conn: raw, listener: l}, nil
		}
		_ = raw.Close()
	}
}

// serves reports whether a connection's peer is the task's user, or has the same privileges as this
// process. Other users who have obtained access to a socket must not act on the run.
func (e *endpoint) serves(raw net.Conn) bool {
	peer := proc.Peer(raw)
	if peer == nil {
		return false
	}
	u := e.view().User
	return peer.Uid == 0 || int(peer.Uid) == os.Geteuid() || u != nil && peer.Uid == u.UID
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
