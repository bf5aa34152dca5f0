package taskapi

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

type connKey struct{}

// ProcessOf returns the ID of the process that sent a context's request or opened its connection,
// or 0 if it is unknown.
func ProcessOf(ctx context.Context) int {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return 0
	}
	if peer := proc.Peer(c.Conn); peer != nil {
		return int(peer.Pid)
	}
	return 0
}
