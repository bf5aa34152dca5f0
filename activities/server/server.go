package server

import (
	"context"
	"errors"
	"sync/atomic"

	"go.temporal.io/sdk/client"
)

// errNotConnected is retried like any outage.
var errNotConnected = errors.New("no connection to the Temporal server yet")

// Server is the connection to the Temporal server. It can be passed to other code before it is
// connected, because tasks are served from the start. Until then, the server counts as unreachable.
type Server struct {
	client atomic.Pointer[client.Client]
	known  *Known
}

// New returns a server. Its connection must use k as a stats handler.
func New(k *Known) *Server { return &Server{known: k} }

// Connect sets the connection, which [Server.Close] closes.
func (s *Server) Connect(c client.Client) { s.client.Store(&c) }

// Close closes the connection, if any.
func (s *Server) Close() {
	if c, err := s.connected(); err == nil {
		c.Close()
	}
}

func (s *Server) connected() (client.Client, error) {
	if c := s.client.Load(); c != nil {
		return *c, nil
	}
	return nil, errNotConnected
}

// RecordActivityHeartbeat sends a heartbeat through the client.
func (s *Server) RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	return c.RecordActivityHeartbeat(ctx, taskToken, details...)
}
