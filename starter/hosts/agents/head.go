package agents

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// HeadConfig configures a run's head.
type HeadConfig struct {
	// Key is the agents' key; see [Key].
	Key []byte
	// Own is the head's own request, and Most the maximum number of agents.
	Own  Request
	Most int
	// Dial connects to the Temporal server, once the run has started.
	Dial func(context.Context) (net.Conn, error)
	// Changed is called with the number of agents, including the head, when it changes.
	Changed func(agents int)
}

// Head serves a run's endpoint.
type Head struct {
	HeadConfig
	// Host is the head's own host worker name.
	Host string

	listener net.Listener
	tls      *tls.Config
	ctx      context.Context // canceled by Close
	cancel   context.CancelFunc
	open     chan struct{} // one for each connection after its handshake
	started  chan struct{} // closed when run is known
	run      Run

	mu      sync.Mutex
	members *members
	closing bool // whether agents may no longer join
	joined  sync.WaitGroup
}

// ErrTaken reports that another program listens at the endpoint.
var ErrTaken = errors.New("the port is already in use")

// Listen listens at the address, which is the endpoint.
func Listen(ctx context.Context, address string, c HeadConfig) (*Head, error) {
	config, err := tlsConfig(c.Key, agentProtocol, serverProtocol)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrTaken
	}
	if err != nil {
		return nil, err
	}
	h := &Head{HeadConfig: c, listener: l, tls: config, open: make(chan struct{}, c.Most*connections), started: make(chan struct{})}
	h.members, h.Host = newMembers(c.Own, c.Most)
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go h.serve()
	return h, nil
}

// Start admits the agents that wait for the run.
func (h *Head) Start(r Run) {
	h.mu.Lock()
	h.members.executionID = r.ExecutionID
	h.mu.Unlock()
	h.run = r
	close(h.started)
}

// Close waits until all agents have left or ctx is done, and closes all connections. It may be
// called on a nil Head.
func (h *Head) Close(ctx context.Context) {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	left := make(chan struct{})
	go func() {
		h.joined.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-ctx.Done():
	}
	h.cancel()
	_ = h.listener.Close()
}

const (
	// handshakes limits the handshakes in progress, plus one per agent. Agents complete a
	// handshake immediately; when the limit is reached, the oldest hanging handshake is aborted.
	handshakes = 256
	// connections limits each agent's connections.
	connections = 32
)

func (h *Head) serve() {
	under := make([]context.CancelFunc, handshakes+h.Most) // the latest handshakes
	for n := 0; ; {
		conn, err := h.listener.Accept()
		switch {
		case h.ctx.Err() != nil:
			return
		case err != nil:
			time.Sleep(acceptAgain) // no descriptors are left
		default:
			ctx, done := context.WithTimeout(h.ctx, handshakeTakes)
			if first := under[n]; first != nil {
				first()
			}
			under[n], n = done, (n+1)%len(under)
			go h.accept(ctx, conn)
		}
	}
}

// acceptAgain is the pause before accepting connections again after a failure.
const acceptAgain = 100 * time.Millisecond

// accept serves a connection. ctx limits its handshake.
func (h *Head) accept(ctx context.Context, raw net.Conn) {
	conn := tls.Server(raw, h.tls)
	defer conn.Close()
	defer context.AfterFunc(h.ctx, func() { _ = raw.Close() })()
	if conn.HandshakeContext(ctx) != nil {
		return
	}
	select {
	case h.open <- struct{}{}:
		defer func() { <-h.open }()
	default:
		return
	}
	switch conn.ConnectionState().NegotiatedProtocol {
	case agentProtocol:
		h.agent(conn)
	case serverProtocol:
		select {
		case <-h.started:
		case <-h.ctx.Done():
			return
		}
		if server, err := h.Dial(h.ctx); err == nil {
			pass(conn, server)
		}
	}
}

// agent admits an agent while its connection lasts.
func (h *Head) agent(conn *tls.Conn) {
	var r Request
	_ = conn.SetReadDeadline(time.Now().Add(handshakeTakes))
	if readLine(conn, &r) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	one := &member{cut: func() { _ = conn.NetConn().Close() }}
	a := h.admit(r, one)
	if a.Refusal == "" {
		defer h.leave(a.Host, one)
		select {
		case <-h.started:
			a.Run = h.run
		case <-h.ctx.Done():
			return
		}
	}
	if writeLine(conn, a) != nil || a.Refusal != "" {
		return
	}
	_, _ = conn.Read(make([]byte, 1)) // agents send nothing more
}

// admit adds an agent to the members, or refuses it.
func (h *Head) admit(r Request, one *member) (a Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing && h.members.had(r) == nil { // close waits for agents that rejoin
		return Answer{Refusal: "the run has ended", Later: true}
	}
	if a = h.members.check(r); a.Refusal == "" {
		a.Host = h.members.add(r, one)
		h.joined.Add(1)
		h.Changed(len(h.members.all))
	}
	return a
}

func (h *Head) leave(host string, one *member) {
	defer h.joined.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.members.all[host] == one {
		delete(h.members.all, host)
		h.Changed(len(h.members.all))
	}
}
