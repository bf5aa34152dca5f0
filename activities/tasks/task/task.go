package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// ErrNotATask is returned if clusterrun did not start this process.
var ErrNotATask = errors.New("barrier is not defined. It is likely because you are calling get_barrier() in the main process. " +
	"get_barrier() can only be called in the subprocesses. (" + wire.SocketVar + " is not set: clusterrun did not start this process.)")

// Task is a task of a run, seen from its own process. Its methods may be called concurrently.
type Task struct {
	socket string
	client *http.Client
	watch  watch

	mu           sync.Mutex
	progressSent time.Time
}

var (
	currentMu sync.Mutex
	current   *Task
)

// Current returns this process's task, or [ErrNotATask].
func Current() (*Task, error) {
	socket := os.Getenv(wire.SocketVar)
	if socket == "" {
		return nil, ErrNotATask
	}
	currentMu.Lock()
	defer currentMu.Unlock()
	if current == nil || current.socket != socket {
		current = of(socket)
	}
	return current, nil
}

// of returns a socket's task.
func of(socket string) *Task { return &Task{socket: socket, client: clientOf(socket)} }

// Info describes a task.
type Info = wire.Task

// Info asks the host for the task's description.
func (t *Task) Info(ctx context.Context) (Info, error) {
	var out Info
	return out, t.call(ctx, http.MethodGet, wire.PathTask, nil, &out)
}

// Member is a task of the cluster.
type Member = wire.Member

// Cluster asks the host for all tasks of the cluster, in rank order.
func (t *Task) Cluster(ctx context.Context) ([]Member, error) {
	var out wire.Cluster
	return out.Members, t.call(ctx, http.MethodGet, wire.PathCluster, nil, &out)
}

// RestartCount returns how many processes the task had before.
func (t *Task) RestartCount() int {
	n, _ := strconv.Atoi(os.Getenv("CLUSTERRUN_RESTART_COUNT"))
	return n
}

// Result sets the task's return value, replacing any earlier one. It can be any JSON value. It
// counts if the process exits with 0. A value larger than 256 KiB stays in a file on the host, and
// the run's result contains its path.
func (t *Task) Result(ctx context.Context, value any) error {
	b, err := encode(value)
	if err != nil {
		return fmt.Errorf("the result is not a JSON value: %w", err)
	}
	if file := os.Getenv("CLUSTERRUN_RESULT_FILE"); len(b) > wire.MaxResult && file != "" {
		return keepResult(file, b)
	}
	return t.call(ctx, http.MethodPut, wire.PathResult, b, nil)
}

// keepResult writes a result that is too large to send. Users who may read the directory may read
// it.
func keepResult(file string, value []byte) error {
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return err
	}
	return atomicfile.Write(file, value, 0o600|dir.Mode().Perm()&0o044)
}

// Error reports why the program is about to fail, with the caller's stack. It replaces any earlier
// report. It counts if the process does not exit with 0.
func (t *Task) Error(ctx context.Context, report error) error {
	if report == nil {
		return errors.New("the error to report is nil")
	}
	return t.Report(ctx, Report{Kind: kindOf(report), Message: report.Error(), Traceback: string(debug.Stack())})
}

// Report is an error that a program reports about itself. A zero time means now.
type Report = wire.Error

// Report is like Error, but takes a complete report. The first 64 KiB of a message are kept, and
// 256 KiB of a traceback, without its middle.
func (t *Task) Report(ctx context.Context, r Report) error {
	if r.Timestamp == 0 {
		r.Timestamp = float64(time.Now().UnixMicro()) / 1e6
	}
	// The host does the same, but rejects a request that is far too large.
	r.Message, r.Traceback = shorten.Text(r.Message, wire.MaxMessage), shorten.Traceback(r.Traceback, wire.MaxTraceback)
	b, err := encode(r)
	if err != nil {
		return fmt.Errorf("cannot report the error: %w", err)
	}
	return t.call(ctx, http.MethodPut, wire.PathError, b, nil)
}

// encode returns JSON without unnecessary escapes: < stays <.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// kindOf returns an error's type, or an empty string if it is uninformative.
func kindOf(err error) string {
	switch name := fmt.Sprintf("%T", err); name {
	case "*errors.errorString", "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError":
		return ""
	default:
		return name
	}
}

const (
	// progressEvery is the minimum time between updates. People cannot see more.
	progressEvery = 100 * time.Millisecond
	// maxProgress limits the message that is sent, in bytes; 100 bytes are shown.
	maxProgress = 1000
	// progressPatience limits how long progress may block a program.
	progressPatience = time.Second
)

// Progress reports the task's progress, which users see while the task runs. A total of 0 means
// that the end is unknown. It is cheap to call often. At most ten updates a second are sent, plus
// every update that reaches the total. If the host is away, Progress blocks for at most a second.
func (t *Task) Progress(ctx context.Context, current, total float64, message string) error {
	return t.ProgressWith(ctx, current, total, message, nil)
}

// ProgressWith is like [Task.Progress] with up to eight further numbers by name, such as a loss.
// They are kept over time, and sort the trials of a sweep.
func (t *Task) ProgressWith(ctx context.Context, current, total float64, message string, metrics map[string]float64) error {
	t.mu.Lock()
	now := time.Now()
	if now.Sub(t.progressSent) < progressEvery && (total <= 0 || current < total) {
		t.mu.Unlock()
		return nil
	}
	t.progressSent = now
	t.mu.Unlock()
	b, err := encode(wire.Progress{Current: current, Total: total, Message: shorten.Text(message, maxProgress), Metrics: metrics})
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, progressPatience)
	defer cancel()
	return t.call(ctx, http.MethodPut, wire.PathProgress, b, nil)
}

// APIError is the error of a request that the host refused.
type APIError struct {
	// Code identifies the error for programs, such as "too_large".
	Code    string
	Message string
	// Field is the invalid field of the request, if any.
	Field string
}

func (e *APIError) Error() string { return e.Message }
