package taskapi

import (
	"io"
	"net"
	"sync"
)

// conn is one connection of a task.
type conn struct {
	net.Conn
	listener *listener
	// begun reports whether its first byte has been read.
	begun bool
	once  sync.Once
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

func (c *conn) Close() error {
	c.once.Do(func() { <-c.listener.slots })
	return c.Conn.Close()
}
