package hostservice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/remotecommand"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Exec is a task with which a client may execute commands.
type Exec struct {
	Task       string `json:"task"`
	Generation int    `json:"generation"`
	// Key is the hash of the secret that the client must send; see [KeyOf]. Until is the time up to
	// which it may begin.
	Key   string    `json:"key"`
	Until time.Time `json:"until"`
}

// Executor executes a command with a task, for a client. ctx ends with the connection.
type Executor func(ctx context.Context, run runkey.Run, e Exec, s *remotecommand.Session) remotecommand.End

// KeyOf returns the hash of a secret.
func KeyOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// DescribeExec returns how to execute commands with a task.
func (s *Server) DescribeExec(run runkey.Run, e Exec) *spec.HostService {
	return s.describe(grant{Run: run, Exec: &e})
}

func toExec(g grant, _ *http.Request) bool {
	return g.Exec != nil && time.Now().Before(g.Exec.Until)
}

// exec executes a command. The bodies of the request and of the answer are its connection.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, g grant) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/2 always is
	w.Header().Set("Content-Type", "application/octet-stream")
	_ = control.Flush() // tells the client that the request was accepted
	_ = control.SetReadDeadline(time.Now().Add(headerTimeout))
	session, err := remotecommand.Accept(r.Body, flushed{w, control})
	if err != nil {
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	if KeyOf(session.Secret) != g.Exec.Key {
		session.Close(remotecommand.End{Code: exitcode.Machinery, Why: "the permission was given to another client"})
		return
	}
	session.Expire = func() { _ = control.SetWriteDeadline(time.Now().Add(takenWithin)) }
	session.Close(s.executor(r.Context(), g.Run, *g.Exec, session))
}

// takenWithin is the time in which a client must take the output of a command that has ended.
const takenWithin = time.Minute

// flushed sends each piece at once.
type flushed struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// Exec executes a command with a task, for which the service was described. The error is a
// [remotecommand.ErrCut] if the connection breaks later.
func (c *Client) Exec(ctx context.Context, client remotecommand.Client, start remotecommand.Start) (remotecommand.End, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, out := io.Pipe()
	defer body.Close()
	// HTTP/2 notices the end of ctx only when it does not wait for more of the body.
	defer context.AfterFunc(ctx, func() { _ = body.CloseWithError(ctx.Err()) })()
	response, err := c.send(ctx, http.MethodPost, "/exec", body, -1)
	if err != nil {
		return remotecommand.End{}, err
	}
	defer response.Body.Close()
	return client.Run(ctx, response.Body, out, start)
}
