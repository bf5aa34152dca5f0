package homeworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Link is a command's connection to the home worker that serves its supervisor.
type Link struct {
	conn *net.UnixConn
	in   *json.Decoder
}

// Connect connects to the home's home worker, starting it if it is not running.
func (h Home) Connect(ctx context.Context) (*Link, error) {
	conn, err := h.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &Link{conn, json.NewDecoder(conn)}, nil
}

// PID returns the home worker's process ID, or 0 if it is unknown.
func (l *Link) PID() int {
	if peer := proc.Peer(l.conn); peer != nil {
		return int(peer.Pid)
	}
	return 0
}

// Serve makes the home worker the supervisor's side. socket is the side's end of the connection
// to the supervisor; Serve closes it. If the home worker dies, the connection breaks, and the
// supervisor starts its own side.
func (l *Link) Serve(s workers.Supervised, socket *os.File) {
	defer socket.Close()
	if _, _, err := l.conn.WriteMsgUnix([]byte{'\n'}, syscall.UnixRights(int(socket.Fd())), nil); err == nil {
		_ = l.send(request{Serve: &supervised{Options: s.Options, PID: s.PID, Environ: s.Environ, Log: s.Log}})
	}
}

func (l *Link) send(r request) error { return json.NewEncoder(l.conn).Encode(r) }

// answerBound limits the wait for a run's start, and hurriedBound the rest of the wait once the run
// is no longer needed.
var answerBound, hurriedBound = 20 * time.Second, 2 * time.Second

// Start starts a run through the home worker, like [starter.Start]. c is the command's own
// client, in case the home worker dies. When ctx is done, Start still waits for the answer for a
// while, because the run may have been started. The error is [os.ErrDeadlineExceeded] if that is
// unknown.
func (l *Link) Start(ctx context.Context, c client.Client, s *spec.RunSpec, o starter.Options) (*starter.Run, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(answerBound))
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetReadDeadline(time.Now().Add(hurriedBound)) })
	code := o.Source.Result()
	o.Source = sourcecode.Known(code)
	_ = l.send(request{Start: &start{Spec: s, Options: o, Source: code}})
	var e event
	err := l.in.Decode(&e)
	stop()
	_ = l.conn.SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("no answer about the start of run %s (%w); if the server has started it, the next `clusterrun run` stops it", o.ID, err)
	case err != nil:
		return startAgain(ctx, c, s, o)
	case e.Running:
		return nil, &starter.RunningError{ID: o.ID}
	case e.Execution == "":
		return nil, errors.New(e.Refused)
	}
	return starter.Get(c, o.ID, e.Execution), nil
}

// startAgain starts a run that a home worker may have started before it died. It relies on the fact
// that only that run uses the queue.
func startAgain(ctx context.Context, c client.Client, s *spec.RunSpec, o starter.Options) (*starter.Run, error) {
	if d, err := c.DescribeWorkflowExecution(ctx, o.ID, ""); err == nil && d.GetExecutionConfig().GetTaskQueue().GetName() == o.Queue {
		return starter.Get(c, o.ID, d.GetWorkflowExecutionInfo().GetExecution().GetRunId()), nil
	}
	return starter.Start(ctx, c, s, o)
}

// Wait waits for a run to finish, like [starter.Run.WaitNotify]. If the home worker dies, Wait
// queries the server itself.
func (l *Link) Wait(ctx context.Context, run *starter.Run, notify func(error)) (*spec.RunResult, error) {
	if l == nil {
		return run.WaitNotify(ctx, notify)
	}
	defer context.AfterFunc(ctx, func() { l.conn.Close() })()
	for {
		var e event
		err := l.in.Decode(&e)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil, e.Ended && e.Result == nil:
			return run.WaitNotify(ctx, notify)
		case e.Ended && e.Result.Verdict == spec.VerdictSucceeded:
			return e.Result, nil
		case e.Ended:
			return e.Result, &starter.Error{RunID: run.ID, Result: e.Result}
		case e.Stuck != nil:
			notify(e.Stuck)
		case e.Trouble != nil && *e.Trouble == "":
			notify(nil)
		case e.Trouble != nil:
			notify(errors.New(*e.Trouble))
		}
	}
}

// Close closes the connection. Until then, the home worker does not exit.
func (l *Link) Close() { _ = l.conn.Close() }

// Leave notifies the home worker that the side has nothing more to report.
func (l *Link) Leave() { _ = l.send(request{Leave: true}) }
