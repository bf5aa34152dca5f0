package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Stopping is the state of stopping together: whether the run's tasks must stop, who asked first,
// why, and how much time they have.
type Stopping = wire.Stopping

// Stop is a request that all the run's tasks stop.
type Stop = wire.Stop

// RequestStop asks for all tasks of the run to stop. If err is not nil, it is the reason. The
// first error decides the run's result, unless its kind means a clean stop. [io.EOF] has the kind
// "EOF", which is clean by default. RequestStop returns when the run has recorded the stop; from
// then on ShouldStop returns true.
func (t *Task) RequestStop(ctx context.Context, err error) error {
	_, failed := t.Stop(ctx, Stop{Error: reportOf(err)})
	return failed
}

// reportOf returns the report of an error that stops the run. It is called in the goroutine with
// the error.
func reportOf(err error) *Report {
	if err == nil {
		return nil
	}
	kind := kindOf(err)
	if errors.Is(err, io.EOF) {
		kind = "EOF" // its type is unnamed
	}
	return &Report{Kind: kind, Message: err.Error(), Traceback: string(debug.Stack())}
}

// Stop is like RequestStop, but takes a complete request. It returns the run's resulting state,
// because another task may have asked first.
func (t *Task) Stop(ctx context.Context, request Stop) (Stopping, error) {
	if request.Key == "" {
		request.Key = newKey()
	}
	// The host keeps less, and a longer string, which it would not even read, must not fail.
	request.Reason = shorten.Text(request.Reason, wire.MaxMessage)
	if request.Error != nil {
		e := *request.Error
		e.Message = shorten.Text(e.Message, wire.MaxMessage)
		e.Traceback = shorten.Traceback(e.Traceback, wire.MaxTraceback)
		request.Error = &e
	}
	b, err := json.Marshal(request)
	if err != nil {
		return Stopping{}, fmt.Errorf("cannot send the request to stop: %w", err)
	}
	return t.askRun(ctx, http.MethodPost, b)
}

// askRun sends a request that the run answers, and retries while the run is away.
func (t *Task) askRun(ctx context.Context, method string, body []byte) (Stopping, error) {
	for {
		var out Stopping
		err := t.call(ctx, method, wire.PathStop, body, &out)
		var refused *APIError
		switch {
		case err == nil:
			t.watch.learn(out)
			return out, nil
		case !errors.As(err, &refused) || refused.Code != wire.CodeUnavailable || ctx.Err() != nil:
			return out, err
		}
	}
}

// Stopping asks the host whether the tasks must stop.
func (t *Task) Stopping(ctx context.Context) (Stopping, error) {
	var out Stopping
	err := t.call(ctx, http.MethodGet, wire.PathStop, nil, &out)
	if err == nil {
		t.watch.learn(out)
	}
	return out, err
}

// ShouldStop reports whether the run's tasks must stop. It is cheap to call in every step: the
// first call makes the host report every change to this process, and later calls only read the
// state. If the host cannot be asked, ShouldStop returns false; Stopping returns the reason.
func (t *Task) ShouldStop() bool {
	return t.watching().Latest().Value.Stop
}

// Preempted returns the time left until the task is stopped, if it has been given notice. Notice
// is given when its host drains or a person requests it. It is as cheap as ShouldStop. Save a
// checkpoint, and exit with a nonzero code; the run continues when there is capacity. If all tasks
// exit with 0 in time, the run succeeds.
func (t *Task) Preempted() (left time.Duration, noticed bool) {
	now := t.watching().Latest().Value
	if now.Notice == nil {
		return 0, false
	}
	return max(0, time.Duration(now.Notice.Left*float64(time.Second))-time.Since(now.at)), true
}

// WaitForStop waits until the run's tasks must stop. It returns ctx's error if ctx is done first,
// or an error if the host cannot be asked.
func (t *Task) WaitForStop(ctx context.Context) (Stopping, error) {
	w := t.watching()
	for now := w.Latest(); ; now = now.Next() {
		if now.Value.Stop {
			return now.Value.Stopping, nil
		}
		select {
		case <-now.Later():
		case <-w.over:
			return now.Value.Stopping, w.err
		case <-ctx.Done():
			return now.Value.Stopping, context.Cause(ctx)
		}
	}
}
