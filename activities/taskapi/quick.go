package taskapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
)

// Programs meet at local barriers in every step, and then a request through
// net/http takes longer than everything else about it: each of its connections
// has a goroutine that waits for the answer and one that waits for the end of the
// connection. So arrivals in the very form that our clients send are answered
// here, with the goroutine that read the last arrival writing all answers. A
// connection on which anything else comes is net/http's from then on.

// maxQuick bounds such a request, in bytes.
const maxQuick = 4 << 10

// quickPatience is how long an answer may take whose reader does not read. Others
// wait for theirs meanwhile.
const quickPatience = time.Second

var (
	quickStart = []byte("POST " + wire.PathBarriers)
	quickHead  = []byte(" HTTP/1.1\r\nHost: task\r\nContent-Length: ")
	headEnd    = []byte("\r\n\r\n")
)

// accept serves the connections of a task, until its listener is closed.
func (s *Server) accept(ctx context.Context, l *listener) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var warned time.Time
	for {
		c, err := l.accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Such as too many open files: it passes, or not, with others.
			if time.Since(warned) > warnAgain {
				warned = time.Now()
				s.Log.Warn("a task cannot ask its host at the moment", zap.String("task", l.endpoint.id.Task), zap.Error(err))
			}
			l.closeIdle()
			time.Sleep(acceptAgain)
			continue
		}
		c.forget = context.AfterFunc(ctx, func() { _ = c.Conn.Close() })
		s.group.Go(func(ctx context.Context) { s.front(ctx, c) })
	}
}

const (
	acceptAgain = 100 * time.Millisecond
	warnAgain   = time.Minute
)

// quick serves arrivals on one connection.
type quick struct {
	*conn
	server *Server
	ticket *ticket
	// told has an element once the answer to the last arrival is written.
	told chan error
	out  []byte
}

// front serves a connection as long as arrivals come on it.
func (s *Server) front(ctx context.Context, c *conn) {
	q := &quick{conn: c, server: s, told: make(chan error, 1)}
	_ = c.SetReadDeadline(time.Now().Add(s.headerPatience))
	for first := true; ; first = false {
		_, err := c.in.Peek(1)
		if err != nil {
			_ = c.Close()
			return
		}
		c.setIdle(false)
		if first {
			_ = c.SetReadDeadline(time.Time{})
		}
		name, body, size := parseQuick(c.in)
		if size == 0 || !q.arrive(name, body, size) {
			s.handOver(c)
			return
		}
		// The next request, or the end of the connection. (That of a client which
		// sends requests without waiting for answers is only seen after those.)
		_, err = c.in.Peek(1)
		if err != nil {
			q.ticket.leave()
			_ = c.Close()
			return
		}
		select {
		case err = <-q.told:
		case <-ctx.Done():
			q.ticket.leave()
			err = ctx.Err()
		}
		if err != nil {
			_ = c.Close()
			return
		}
	}
}

// handOver gives a connection to net/http.
func (s *Server) handOver(c *conn) {
	select {
	case s.general.conns <- c:
	case <-s.general.closed:
		_ = c.Close()
	}
}

// parseQuick finds an arrival that has been read as a whole. Size is that of the
// request; 0: it is none of those.
func parseQuick(in interface {
	Buffered() int
	Peek(int) ([]byte, error)
}) (name, body []byte, size int) {
	b, _ := in.Peek(in.Buffered())
	rest, ok := bytes.CutPrefix(b, quickStart)
	if !ok {
		return nil, nil, 0
	}
	name, rest, ok = bytes.Cut(rest, quickHead)
	if !ok || bytes.ContainsAny(name, " \r\n/?#") {
		return nil, nil, 0
	}
	number, rest, ok := bytes.Cut(rest, headEnd)
	if !ok || len(number) == 0 || len(number) > 4 {
		return nil, nil, 0
	}
	length := 0
	for _, digit := range number {
		if digit < '0' || digit > '9' {
			return nil, nil, 0
		}
		length = 10*length + int(digit-'0')
	}
	if length > len(rest) {
		return nil, nil, 0
	}
	return name, rest[:length], len(b) - len(rest) + length
}

// arrive has the task arrive at a local barrier. It says false, and has done
// nothing, where it is for somebody else to answer.
func (q *quick) arrive(name, body []byte, size int) bool {
	unescaped, err := url.PathUnescape(string(name))
	if err != nil {
		return false
	}
	in, ok := parseArrive(body)
	if !ok && decodeStrictly(body, &in) != nil {
		return false
	}
	r := request{server: q.server, endpoint: q.listener.endpoint, name: unescaped}
	a, local, problem := r.arrival(in)
	if problem != nil || !local {
		return false
	}
	_, _ = q.in.Discard(size)
	q.ticket = q.listener.endpoint.rounds.arrive(a, q.tell)
	return true
}

// parseArrive reads {"key":"K"} and {"key":"K","local":true}, which is what there
// mostly is. Everything else is for the real decoder.
func parseArrive(body []byte) (wire.Arrive, bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"key":"`))
	if !ok {
		return wire.Arrive{}, false
	}
	key, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || bytes.IndexByte(key, '\\') >= 0 {
		return wire.Arrive{}, false
	}
	switch string(rest) {
	case "}":
		return wire.Arrive{Key: string(key)}, true
	case `,"local":true}`:
		return wire.Arrive{Key: string(key), Local: true}, true
	}
	return wire.Arrive{}, false
}

// tell writes the answer.
func (q *quick) tell(o outcome) {
	status, value := http.StatusOK, any(o.released)
	if o.problem != nil {
		status, value = statuses[o.problem.Code], wire.Failure{Error: *o.problem}
	}
	body, err := json.Marshal(value)
	if err != nil {
		q.told <- err
		return
	}
	b := append(q.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)+1), 10)
	b = append(b, headEnd...)
	b = append(b, body...)
	b = append(b, '\n')
	q.out = b
	_ = q.SetWriteDeadline(time.Now().Add(quickPatience))
	q.setIdle(true)
	_, err = q.Write(b)
	q.told <- err
}

// general is the listener of net/http: for connections that were handed over.
type general struct {
	conns  chan *conn
	closed chan struct{}
}

func (g *general) Accept() (net.Conn, error) {
	select {
	case c := <-g.conns:
		return c, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

func (g *general) Close() error {
	select {
	case <-g.closed:
	default:
		close(g.closed)
	}
	return nil
}

func (g *general) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }
