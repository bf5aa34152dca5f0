package activities

import (
	"errors"
	"sync/atomic"

	"go.temporal.io/sdk/client"
)

// errNotConnected is tried again like any outage.
var errNotConnected = errors.New("there is no connection to the Temporal server yet")

// connection is the Temporal server, for those that are asked for it before there
// is a connection: tasks are served from the first moment.
type connection struct {
	client atomic.Pointer[client.Client]
}

// Connect gives it the server.
func (s *connection) Connect(c client.Client) { s.client.Store(&c) }

func (s *connection) connected() (client.Client, error) {
	if c := s.client.Load(); c != nil {
		return *c, nil
	}
	return nil, errNotConnected
}
