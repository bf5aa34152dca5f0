package remotehosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workers"
)

// host is one of a run's hosts, as seen by the command.
type host struct {
	name, login string
	process     *process
	client      *http.Client
	ending      chan struct{} // closed when we stop it
	endOnce     sync.Once
	copied      chan struct{} // closed when copyOutput has returned, or nil if it was not called
	incomplete  error         // the error of copyOutput
}

// start starts the host's agent, the program on the host, and a host worker. If it fails, it
// leaves nothing behind.
func (h *host) start(ctx context.Context, c Config, o workers.Options) (Facts, error) {
	var err error
	if h.process, err = startProcess(commandLine(c.Agent, h.login, script(c.Program))); err != nil {
		return Facts{}, fmt.Errorf("%s: %w", c.Agent[0], err)
	}
	stop := context.AfterFunc(ctx, h.process.kill)
	facts, err := h.greet(ctx, c, o)
	if err == nil && !stop() {
		err = context.Cause(ctx) // it is being killed
	}
	if err != nil {
		h.process.kill()
	}
	return facts, err
}

func (h *host) greet(ctx context.Context, c Config, o workers.Options) (Facts, error) {
	var facts Facts
	in := &frameReader{in: bufio.NewReader(h.process.stdout)}
	if err := in.next(); err != nil {
		return facts, in.afterText(h.whyNot(ctx, c, err))
	}
	conn := &pipes{Reader: in, Writer: h.process.stdin, close: func() { _ = h.process.stdin.Close() }}
	dialed := make(chan net.Conn, 1)
	dialed <- conn
	h.client = &http.Client{Transport: &http.Transport{
		Protocols: protocols(),
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-dialed:
				return conn, nil
			default:
				return nil, errLost
			}
		},
	}}
	response, err := h.postJSON(ctx, "/start", startRequest{Version: c.Version, Options: o})
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.code == http.StatusConflict {
		return facts, errors.New(c.otherVersion(refused.text))
	}
	if err == nil {
		err = json.NewDecoder(io.LimitReader(response.Body, maxMessage)).Decode(&facts)
		_ = response.Body.Close()
	}
	if err != nil {
		return facts, h.whyNot(ctx, c, err)
	}
	return facts, nil
}

// errLost reports a request to a host with a closed connection.
var errLost = errors.New("its connection was closed")

// otherVersion describes a host's program with a different version.
func (c Config) otherVersion(version string) string {
	return fmt.Sprintf("its clusterrun is %s, this one is %s; install the same version", version, c.Version)
}

// whyNot returns why the host did not start: its agent's reason if the agent has exited, and err
// otherwise.
func (h *host) whyNot(ctx context.Context, c Config, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	select {
	case <-h.process.exited:
	case <-time.After(time.Second):
		return err
	}
	return errors.New(c.reason(h.process.err, h.process.said.lines()))
}

// end stops the host, and returns when it is gone or ctx is done. By then its output is copied
// or incomplete.
func (h *host) end(ctx context.Context) {
	h.cut(func() {
		if response, err := h.post(ctx, "/end", nil); err == nil {
			_ = response.Body.Close()
			if h.copied != nil {
				select {
				case <-h.copied:
				case <-ctx.Done():
				}
			}
		}
	})
	select {
	case <-h.process.exited:
	case <-ctx.Done():
		h.process.kill()
	}
}

// cut calls before and closes the connection, whereupon the host stops everything. Only the
// first call has an effect.
func (h *host) cut(before func()) {
	h.endOnce.Do(func() {
		close(h.ending)
		before()
		_ = h.process.stdin.Close()
	})
}

// stopAll stops all processes on the host without the server.
func (h *host) stopAll(ctx context.Context, how supervisor.StopAll) error {
	response, err := h.postJSON(ctx, "/stop", how)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

// ends queries how the host's tasks ended, without the server.
func (h *host) ends(ctx context.Context) (ends Ends, err error) {
	response, err := h.post(ctx, "/ends", nil)
	if err != nil {
		return ends, err
	}
	defer response.Body.Close()
	return ends, json.NewDecoder(response.Body).Decode(&ends)
}

// refusedError is a response from the host with an error status.
type refusedError struct {
	code int
	text string
}

func (e *refusedError) Error() string { return e.text }

func (h *host) postJSON(ctx context.Context, path string, in any) (*http.Response, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return h.post(ctx, path, bytes.NewReader(b))
}

// post sends a request. It returns an error unless the response is a success.
func (h *host) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := h.client.Do(r)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxSaid))
	return nil, &refusedError{code: response.StatusCode, text: strings.TrimSpace(string(text))}
}
