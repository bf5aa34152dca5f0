package taskapi

import (
	"context"
	"net"
	"syscall"
)

type connKey struct{}

// ProcessOf returns the ID of the process that sent a context's request or opened its connection,
// or 0 if it is unknown.
func ProcessOf(ctx context.Context) int {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return 0
	}
	if peer := peerOf(c.Conn); peer != nil {
		return int(peer.Pid)
	}
	return 0
}

// peerOf returns the credentials of the process that opened a connection, or nil if unknown.
func peerOf(c net.Conn) *syscall.Ucred {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return nil
	}
	var peer *syscall.Ucred
	_ = control.Control(func(fd uintptr) {
		peer, _ = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return peer
}
