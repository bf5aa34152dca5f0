package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/activities/task/coordinator"
	"github.com/clusterrun/clusterrun/workflows/shorten"
)

// Stopping says whether the tasks of the run are to stop, who asked first, why, and
// how much time they have.
type Stopping = wire.Stopping

// Stop is a request that all tasks of the run stop.
type Stop = wire.Stop

// RequestStop asks for all tasks of the run to stop, because of err if there is one:
// the first error is the verdict of the run, unless it is of a kind that is none.
// [io.EOF] is the kind "EOF", which is none by default. It returns when the run knows
// of it; from then on ShouldStop says true.
func (t *Task) RequestStop(ctx context.Context, err error) error {
	_, failed := t.Stop(ctx, Stop{Error: reportOf(err)})
	return failed
}

// reportOf returns an error that stops the run, from the goroutine that has it.
func reportOf(err error) *Report {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*coordinator.PanicError](err); ok {
		return &Report{Kind: "panic", Message: fmt.Sprint(p.Value), Traceback: string(p.Stack)}
	}
	kind := kindOf(err)
	if errors.Is(err, io.EOF) {
		kind = "EOF" // no type says so
	}
	return &Report{Kind: kind, Message: err.Error(), Traceback: string(debug.Stack())}
}

// Stop is RequestStop with words of one's own. It returns how the run stands
// afterwards: somebody else may have asked first.
func (t *Task) Stop(ctx context.Context, request Stop) (Stopping, error) {
	if request.Key == "" {
		request.Key = newKey()
	}
	// The host keeps less; what it would not even read is no reason to fail.
	request.Reason = shorten.Text(request.Reason, wire.MaxMessage)
	if request.Error != nil {
		e := *request.Error
		e.Message = shorten.Text(e.Message, wire.MaxMessage)
		e.Traceback = shorten.Traceback(e.Traceback, wire.MaxTraceback)
		request.Error = &e
	}
	b, err := json.Marshal(request)
	if err != nil {
		return Stopping{}, fmt.Errorf("the request to stop cannot be sent: %w", err)
	}
	return t.askRun(ctx, http.MethodPost, b)
}

// ClearStop takes the stop back, whoever asked for it: afterwards ShouldStop says
// false, in all tasks that still run.
func (t *Task) ClearStop(ctx context.Context) (Stopping, error) {
	return t.askRun(ctx, http.MethodDelete, nil)
}

// askRun sends a request that the run answers, for as long as it is away.
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

// Stopping asks the host whether the tasks are to stop.
func (t *Task) Stopping(ctx context.Context) (Stopping, error) {
	var out Stopping
	err := t.call(ctx, http.MethodGet, wire.PathStop, nil, &out)
	if err == nil {
		t.watch.learn(out)
	}
	return out, err
}

// ShouldStop reports whether the tasks of the run are to stop. It is cheap to call in
// every step: the first call has the host tell this process of every change from
// then on, and all others only look. A host that cannot be asked has told of no stop;
// Stopping says why it cannot.
func (t *Task) ShouldStop() bool {
	return t.watching().Latest().Value.Stop
}

// WaitForStop waits until the tasks of the run are to stop. Its error is that of ctx
// if that ends first, and the host's if it cannot say.
func (t *Task) WaitForStop(ctx context.Context) (Stopping, error) {
	w := t.watching()
	for now := w.Latest(); ; now = now.Next() {
		if now.Value.Stop {
			return now.Value, nil
		}
		select {
		case <-now.Later():
		case <-w.over:
			return now.Value, w.err
		case <-ctx.Done():
			return now.Value, context.Cause(ctx)
		}
	}
}
