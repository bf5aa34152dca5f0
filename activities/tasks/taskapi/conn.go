package taskapi

import (
	"io"
	"net"
	"time"
)

// conn is one connection of a task.
type conn struct {
	net.Conn
	listener *listener
	// idle is the time since which it has been unused. It is zero while in use. listener.mu
	// guards it.
	idle time.Time
	// begun reports whether its first byte has been read.
	begun bool
}

// Read is called by net/http, which gets nothing of a connection for arrivals at barriers.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.begun && n > 0 && p[0] == '{' {
		(&lines{conn: c, told: make(chan error, 1)}).serve(p[:n])
		return 0, io.EOF
	}
	c.begun = true
	return n, err
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
