package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// Dial connects to the server at its current address. A client that uses Dial follows the server to
// another port, and never talks to another program on a killed server's port. The connection uses
// TLS, and each side proves that it knows the key.
func (h Home) Dial(ctx context.Context) (net.Conn, error) {
	s, err := h.Find(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("the embedded server is not running")
	}
	key, err := h.tls()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The server may be killed now, and a program that gets its port may not answer at all.
	go func() {
		if h.awaitEnd(ctx, s) {
			cancel()
		}
	}()
	return (&tls.Dialer{Config: key}).DialContext(ctx, "tcp", s.Address)
}

// Keep restarts the server in the background whenever the server has exited, until ctx is done. If
// the server does not start, Keep calls tell once for each reason.
func (h Home) Keep(ctx context.Context, tell func(error)) {
	address := "" // of the last server
	Again(ctx, func() error {
		s, err := h.Ensure(ctx, address)
		if err != nil {
			return err
		}
		address = s.Address
		h.awaitEnd(ctx, s)
		return nil
	}, tell)
}

// Again calls serve repeatedly until ctx is done: immediately if the last call took long, and
// otherwise with growing delays. It calls tell with serve's errors, once for equal errors in a row.
func Again(ctx context.Context, serve func() error, tell func(error)) {
	pace := retry.Backoff{First: 100 * time.Millisecond, Most: 10 * time.Second}
	wait := time.Duration(0)
	told := ""
	for ctx.Err() == nil {
		began := time.Now()
		err := serve()
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			told = ""
		case err.Error() != told:
			told = err.Error()
			tell(err)
		}
		if time.Since(began) >= lasting {
			pace.Reset()
			wait = 0
		}
		_ = retry.Sleep(ctx, wait)
		wait = pace.Next()
	}
}

// A server that has run for at least lasting is restarted immediately.
const lasting = time.Minute

// awaitEnd waits until a server's process has exited or ctx is done, and reports whether the
// process has exited.
func (h Home) awaitEnd(ctx context.Context, s *Instance) (ended bool) {
	pidfd, failed := proc.OpenPidfd(s.PID)
	if failed == nil {
		defer pidfd.Close()
	}
	// The process may have exited earlier, and another process may be using its ID.
	now, err := h.Find(ctx)
	if err == nil && (now == nil || now.PID != s.PID) {
		return true
	}
	if failed != nil || err != nil {
		return false
	}
	defer context.AfterFunc(ctx, func() { pidfd.Close() })()
	return proc.AwaitEnd(pidfd)
}
