package taskapi

import (
	"net"
	"time"
)

// conn is one connection of a task. It wraps net/http's, except for arrivals at local
// barriers in the exact form that our clients send: Read answers them before net/http has
// seen a request, and the goroutine that read the last arrival writes all answers. Programs
// meet at such barriers in every step. With net/http, which needs two goroutines for each
// waiting task, a round of 2, 8 or 32 tasks takes 1.8, 1.6 and 1.5 times as long
// (BenchmarkLocalBarrier).
type conn struct {
	net.Conn
	listener *listener
	// idle is the time since which it has been unused; zero while in use. listener.mu guards
	// it.
	idle time.Time

	// general reports whether net/http serves it from now on.
	general bool
	// ticket is the ticket of the last arrival, and told has an element once its answer is
	// written.
	ticket *ticket
	told   chan error
	// resume is that of [endpoint.waits] for the last arrival.
	resume func(outcome)
	out    []byte
}

// Read answers arrivals in the form of our clients itself. It returns data from the first
// other request on.
func (c *conn) Read(p []byte) (int, error) {
	if c.general {
		return c.Conn.Read(p)
	}
	for {
		// This reads the next request, or the end of the connection.
		n, err := c.Conn.Read(p)
		if err != nil {
			if c.ticket != nil {
				c.leave()
			}
			return n, err
		}
		if c.ticket != nil {
			select {
			case err = <-c.told:
			case <-c.listener.server.group.Context().Done():
				c.leave()
				err = net.ErrClosed
			}
			if err != nil {
				return 0, err
			}
		}
		c.setIdle(false)
		if c.arrive(p[:n]) {
			continue
		}
		if c.ticket != nil {
			_ = c.SetReadDeadline(time.Now().Add(c.listener.server.patience.head))
			_ = c.SetWriteDeadline(time.Time{})
		}
		c.general = true
		return n, nil
	}
}

// leave withdraws the last arrival, if it was not answered.
func (c *conn) leave() {
	c.ticket.leave()
	c.resume(outcome{})
}

// setIdle records whether a connection is between two requests.
func (c *conn) setIdle(idle bool) {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	c.idle = time.Time{}
	if idle {
		c.idle = time.Now()
		l.change.Signal()
	}
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.change.Signal()
	return err
}
