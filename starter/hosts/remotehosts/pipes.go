package remotehosts

import (
	"io"
	"net"
	"sync"
	"time"
)

// pipes is the connection over an agent's stdin and stdout.
type pipes struct {
	io.Reader
	io.Writer
	close func()
	once  sync.Once
}

func (p *pipes) Close() error {
	p.once.Do(p.close)
	return nil
}

func (p *pipes) LocalAddr() net.Addr              { return pipeAddr{} }
func (p *pipes) RemoteAddr() net.Addr             { return pipeAddr{} }
func (p *pipes) SetDeadline(time.Time) error      { return nil }
func (p *pipes) SetReadDeadline(time.Time) error  { return nil }
func (p *pipes) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// onlyConn is a listener with one connection.
type onlyConn struct {
	net.Conn
	taken  sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener]. The second call returns when the connection is closed.
func (l *onlyConn) Accept() (c net.Conn, err error) {
	l.taken.Do(func() { c = l })
	if c == nil {
		<-l.closed
		err = net.ErrClosed
	}
	return c, err
}

// Addr implements [net.Listener].
func (l *onlyConn) Addr() net.Addr { return pipeAddr{} }

// stream is a connection with directions that end separately, like a TCP connection's.
type stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies in both directions. It passes an end, or a failure, on in its direction.
func join(a, b stream) {
	defer a.Close()
	defer b.Close()
	var both sync.WaitGroup
	for _, way := range [][2]stream{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].CloseWrite()
		})
	}
	both.Wait()
}
