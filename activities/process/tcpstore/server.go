package tcpstore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Bounds on the memory and connections that clients can use, in addition to the store itself.
const (
	maxClients = 32 << 10
	// maxUnsent is the number of bytes that may wait to be sent to a client before its requests
	// are no longer read. maxUnsentToAll is the bound for all clients, beyond which clients are
	// disconnected.
	maxUnsent      = 16 << 20
	maxUnsentToAll = 512 << 20
)

// Server serves one store.
type Server struct {
	listener net.Listener
	log      *zap.Logger
	most     int // maximal number of connections
	done     sync.WaitGroup
	unsent   atomic.Int64 // to all clients
	read     atomic.Int64 // from all clients, of requests that are not carried out yet

	mu     sync.Mutex
	store  *store
	conns  map[client]*conn
	last   client
	closed bool
}

// Listen serves a new store at an address, "host:port", until Close. It accepts at most half
// as many clients as this process may open files.
func Listen(address string, log *zap.Logger) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	s := newServer(listener, log)
	s.done.Go(s.accept)
	return s, nil
}

func newServer(listener net.Listener, log *zap.Logger) *Server {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		files.Cur = 1024
	}
	s := &Server{
		listener: listener, log: log, most: int(min(files.Cur/2, maxClients)), //nolint:gosec // at most maxClients
		store: newStore(), conns: map[client]*conn{},
	}
	return s
}

// Close disconnects all clients and frees the port.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for _, c := range s.conns {
		c.close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *Server) accept() {
	for {
		socket, err := s.listener.Accept()
		switch {
		case err == nil:
			s.connect(socket)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// Most likely the process has too many open files; others will be closed.
			s.log.Warn("A client of a store cannot connect.", zap.Error(err))
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (s *Server) connect(socket net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.most {
		_ = socket.Close()
		return
	}
	s.last++
	c := newConn(s, socket, s.last)
	s.conns[c.id] = c
	s.done.Go(c.read)
	s.done.Go(c.write)
}

// do carries out a request, and sends the answers to their clients.
func (s *Server) do(from client, q *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers, err := s.store.do(from, q)
	for _, a := range answers {
		if c := s.conns[a.to]; c != nil {
			c.send(a.data)
		}
	}
	return err
}

func (s *Server) disconnect(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.close()
	delete(s.conns, c.id)
	s.store.leave(c.id)
}

// conn is the connection of one client.
type conn struct {
	socket net.Conn
	server *Server
	id     client
	in     reader

	mu      sync.Mutex
	changed sync.Cond
	unsent  net.Buffers // other clients may be sent the same slices
	size    int64       // of unsent, with overhead for each slice
	closed  bool
}

func newConn(s *Server, socket net.Conn, id client) *conn {
	c := &conn{socket: socket, server: s, id: id, in: reader{in: bufio.NewReader(socket), read: &s.read}}
	c.changed.L = &c.mu
	return c
}

// read carries out the requests of the client, one by one.
func (c *conn) read() {
	defer c.server.disconnect(c)
	r := &c.in
	for {
		q, err := r.next()
		if err == nil {
			err = c.server.do(c.id, q)
		}
		r.release()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, unix.ECONNRESET) {
				c.server.log.Warn("A client of a store is disconnected.", zap.Stringer("client", c.socket.RemoteAddr()), zap.Error(err))
			}
			return
		}
		if !c.awaitRoom() {
			return
		}
	}
}

// awaitRoom waits until the client has read most of what it was sent.
func (c *conn) awaitRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.size > maxUnsent && !c.closed {
		c.changed.Wait()
	}
	return !c.closed
}

// send queues data without blocking. It disconnects the client if too much would be queued
// for all clients together. server.mu must be held.
func (c *conn) send(data reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	size := int64(len(data) + overhead)
	if c.server.unsent.Load()+size > maxUnsentToAll {
		c.closeLocked()
		return
	}
	c.server.unsent.Add(size)
	c.size += size
	c.unsent = append(c.unsent, data)
	c.changed.Broadcast()
}

func (c *conn) write() {
	for {
		c.mu.Lock()
		for len(c.unsent) == 0 && !c.closed {
			c.changed.Wait()
		}
		data, size, closed := c.unsent, c.size, c.closed
		c.unsent, c.size = nil, 0
		c.changed.Broadcast()
		c.mu.Unlock()
		if closed {
			return
		}
		_, err := data.WriteTo(c.socket)
		c.server.unsent.Add(-size)
		if err != nil {
			c.close()
			return
		}
	}
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked()
}

// closeLocked disconnects the client and drops its unsent data. mu must be held.
func (c *conn) closeLocked() {
	c.closed = true
	c.server.unsent.Add(-c.size)
	c.unsent, c.size = nil, 0
	c.changed.Broadcast()
	_ = c.socket.Close()
}
