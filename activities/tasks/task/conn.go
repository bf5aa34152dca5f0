package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// tries is the time between retries of a request.
var tries = retry.Backoff{First: 5 * time.Millisecond, Most: 200 * time.Millisecond}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 16 << 20

// clientOf returns a client of a host.
func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: maxIdle,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}

// call sends a request until there is an answer, or ctx ends.
func (t *Task) call(ctx context.Context, method, path string, body []byte, out any) error {
	return t.retry(ctx, out, func() ([]byte, bool, error) {
		r, err := http.NewRequestWithContext(ctx, method, "http://task"+path, bytes.NewReader(body))
		if err != nil {
			return nil, false, err
		}
		// Every request can be sent twice: the transport may send it again, if the host has
		// closed the connection.
		r.Header["X-Idempotency-Key"] = nil
		a, err := t.client.Do(r)
		if err != nil {
			return nil, false, err
		}
		defer a.Body.Close()
		answer, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
		return answer, false, err
	})
}

// retry asks the host until there is an answer, or ctx ends. ask returns the answer, and
// whether it used a connection that was idle before.
func (t *Task) retry(ctx context.Context, out any, ask func() (answer []byte, reused bool, err error)) error {
	for again := tries; ; {
		answer, reused, err := ask()
		switch {
		case err == nil:
			return decode(answer, out)
		case ctx.Err() != nil:
			return fmt.Errorf("%w (the host was asked at %s)", context.Cause(ctx), t.socket)
		case reused:
			continue // the idle connection may have been closed
		case !passes(err):
			return fmt.Errorf("the host cannot be asked: %w", err)
		}
		if ended := again.Sleep(ctx); ended != nil {
			return fmt.Errorf("%w (the host does not answer: %w)", ended, err)
		}
	}
}

// decode decodes an answer into out, which may be nil. It returns a failure as an error.
func decode(answer []byte, out any) error {
	var f wire.Failure
	failed := bytes.HasPrefix(answer, []byte(`{"error":`)) // with which no other answer begins
	switch {
	case failed:
		out = &f
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the host's answer is from another version: %w", err)
	}
	if failed {
		return asError(f.Error)
	}
	return nil
}

// passes reports whether an error may pass, because the host worker is being restarted or is
// busy. An exchange over HTTP that broke after its connection was made always counts: net/http
// returns errors of its own for it, such as one for a server that closed an idle connection.
func passes(err error) bool {
	var exchange *url.Error
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	if errors.As(err, &exchange) && !dialing {
		return true
	}
	for _, e := range []error{
		fs.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EAGAIN,
		io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
