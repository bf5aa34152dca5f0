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

// tries is the time between a request's retries.
var tries = retry.Backoff{First: 5 * time.Millisecond, Most: 200 * time.Millisecond}

const (
	// maxAnswer limits an answer, in bytes.
	maxAnswer = 16 << 20
	// maxIdle is the maximum number of idle connections.
	maxIdle = 4
)

// clientOf returns a host's client.
func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: maxIdle,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}

// call sends a request until it is answered, or ctx is done.
func (t *Task) call(ctx context.Context, method, path string, body []byte, out any) error {
	return t.callWith(ctx, method, path, func() ([]byte, error) { return body, nil }, out)
}

// callWith is like call, with a body for each try.
func (t *Task) callWith(ctx context.Context, method, path string, body func() ([]byte, error), out any) error {
	for again := tries; ; {
		b, err := body()
		if err != nil {
			return err
		}
		answer, err := t.try(ctx, method, path, b)
		switch {
		case err == nil:
			return decode(answer, out)
		case ctx.Err() != nil:
			return fmt.Errorf("%w (the host was asked at %s)", context.Cause(ctx), t.socket)
		case !passes(err):
			return fmt.Errorf("cannot ask the host: %w", err)
		}
		if ended := again.Sleep(ctx); ended != nil {
			return fmt.Errorf("%w (the host does not answer: %w)", ended, err)
		}
	}
}

// try sends a request once, and returns the answer.
func (t *Task) try(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://task"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Every request can be sent twice, so the transport may resend it if the host closed the
	// connection.
	r.Header["X-Idempotency-Key"] = nil
	a, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	return io.ReadAll(io.LimitReader(a.Body, maxAnswer))
}

// decode decodes an answer into out, which may be nil. It returns a failure as an error.
func decode(answer []byte, out any) error {
	var f wire.Failure
	failed := bytes.HasPrefix(answer, []byte(`{"error":`)) // unique to failures
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

// passes reports whether an error may be temporary, because the host worker is restarting or busy.
// An HTTP exchange that broke after connecting always counts, because net/http returns its own
// errors for it, such as one for a server that closed an idle connection.
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
