package drill

import (
	"io"
	"net"
	"sync"
)

// Cut is a way to cut a [Link].
type Cut string

// The values of [Cut].
const (
	CutNone    Cut = "open"   // everything passes
	CutRefuse  Cut = "refuse" // connections are reset, and new ones refused
	CutDrop    Cut = "drop"   // connections stay, but no data passes
	CutDropOut Cut = "out"    // no data passes from the host to the server
	CutDropIn  Cut = "in"     // no data passes from the server to the host
)

// Link is a TCP proxy between a host and the server that can be cut. Data sent during a drop
// arrives after the link is healed, like TCP after a partition.
type Link struct {
	address string // the listening address
	target  string

	mu       sync.Mutex
	changed  *sync.Cond
	cut      Cut
	cuts     int // counts the changes of cut
	closed   bool
	listener net.Listener
	conns    map[net.Conn]bool
}

// NewLink listens on an address, possibly with port 0, and forwards connections to target.
func NewLink(address, target string) (*Link, error) {
	l := &Link{target: target, cut: CutNone, conns: map[net.Conn]bool{}}
	l.changed = sync.NewCond(&l.mu)
	if err := l.listen(address); err != nil {
		return nil, err
	}
	l.address = l.listener.Addr().String()
	return l, nil
}

// Address returns the link's listening address.
func (l *Link) Address() string { return l.address }

func (l *Link) listen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	l.listener = listener
	go l.accept(listener)
	return nil
}

// Cut cuts the link, and returns a function that heals it. That function does nothing if the link
// was cut again in the meantime.
func (l *Link) Cut(how Cut) (heal func() error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.set(how); err != nil {
		return nil, err
	}
	l.cuts++
	mine := l.cuts
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cuts != mine {
			return nil
		}
		return l.set(CutNone)
	}, nil
}

// set changes the cut. l.mu must be held.
func (l *Link) set(how Cut) error {
	if l.closed || l.cut == how {
		return nil
	}
	if l.cut == CutRefuse {
		if err := l.listen(l.address); err != nil {
			return err
		}
	}
	if how == CutRefuse {
		_ = l.listener.Close()
		l.reset()
	}
	l.cut = how
	l.changed.Broadcast()
	return nil
}

// reset resets all connections. l.mu must be held.
func (l *Link) reset() {
	for c := range l.conns {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = c.Close()
	}
	clear(l.conns)
}

// Close closes the link and its connections.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = l.listener.Close()
	l.reset()
	l.changed.Broadcast()
}

func (l *Link) accept(listener net.Listener) {
	for {
		host, err := listener.Accept()
		if err != nil {
			return
		}
		go l.serve(host)
	}
}

func (l *Link) serve(host net.Conn) {
	if !l.keep(host) {
		return
	}
	defer l.drop(host)
	// A connection made while no data passes is not forwarded to the server.
	if !l.pass(CutDropOut) {
		return
	}
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	if !l.keep(server) {
		return
	}
	defer l.drop(server)
	var both sync.WaitGroup
	both.Go(func() { l.copy(server, host, CutDropOut) })
	both.Go(func() { l.copy(host, server, CutDropIn) })
	both.Wait()
}

func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cut == CutRefuse {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *Link) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	_ = c.Close()
}

// pass waits until data can pass in the given direction, and reports whether the link is still
// open.
func (l *Link) pass(direction Cut) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (l.cut == CutDrop || l.cut == direction) {
		l.changed.Wait()
	}
	return !l.closed
}

func (l *Link) copy(to, from net.Conn, direction Cut) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			if !l.pass(direction) {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			// The end of a stream passes only if data would. When one side closes, both are
			// closed, since gRPC does not half-close.
			if err == io.EOF {
				l.pass(direction)
			}
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}
