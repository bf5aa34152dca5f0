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

// Dial connects to the server at its present address. A client that dials with it follows the
// server to another port, and never talks to another program that has the port of a killed
// server. The connection uses TLS, and both sides prove that they have the key.
func (h Home) Dial(ctx context.Context) (net.Conn, error) {
	s, err := h.Find(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("the embedded server does not run")
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

// Keep starts the server in the background whenever it has ended, until ctx is done. It calls
// tell if the server does not start, once for each reason.
func (h Home) Keep(ctx context.Context, tell func(error)) {
	address := "" // of the last one
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

// Again calls serve repeatedly until ctx is done: at once if the last call took long, and with
// growing delays if not. It calls tell with errors of serve, once for equal errors in a row.
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

// lasting is the time for which a server must run to be started again at once.
const lasting = time.Minute

// awaitEnd returns when the process of a server has ended, or ctx is done, and reports
// whether it has ended.
func (h Home) awaitEnd(ctx context.Context, s *Server) (ended bool) {
	pidfd, failed := proc.OpenPidfd(s.PID)
	if failed == nil {
		defer pidfd.Close()
	}
	// The process may have ended before, and another process may have its ID.
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
