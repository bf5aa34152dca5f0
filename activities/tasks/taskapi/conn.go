package taskapi

import (
	"net"
	"sync"
)

// conn is a task's connection.
type conn struct {
	net.Conn
	listener *listener
	once     sync.Once
}

func (c *conn) Close() error {
	c.once.Do(func() { <-c.listener.slots })
	return c.Conn.Close()
}
