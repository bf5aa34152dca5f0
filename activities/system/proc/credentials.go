package proc

import (
	"net"
	"syscall"
)

// Peer returns the user and process that opened c, or nil if they are unknown.
func Peer(c net.Conn) *syscall.Ucred {
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
