package taskapi

import (
	"context"
	"syscall"
)

type connKey struct{}

// ProcessOf returns the process ID of who sent the request of a context, or opened the
// connection for it. 0: nobody knows.
func ProcessOf(ctx context.Context) int {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return 0
	}
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return 0
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = control.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}
