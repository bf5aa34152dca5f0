package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// taskHost serves two workers of a run that can be stopped.
type taskHost struct {
	*taskapi.Server
	t     *testing.T
	run   runkey.Run
	paths []string

	mu     sync.Mutex
	now    spec.Stopping
	wishes []spec.TogetherRequest
	refuse error
}

func newTaskHost(t *testing.T, options ...func(*taskapi.Config)) *taskHost {
	t.Helper()
	h := &taskHost{t: t, run: runkey.Run{WorkflowID: "iris"}}
	config := taskapi.Config{StateDir: t.TempDir(), Stops: h, Log: zap.NewNop()}
	for _, o := range options {
		o(&config)
	}
	h.Server = must.Get(taskapi.NewServer(config))(t)
	t.Cleanup(func() { _ = h.Close() })
	names := []string{"worker-0", "worker-1"}
	view := &taskapi.View{Tasks: names, Here: map[string]bool{}}
	for i, name := range names {
		view.Members = append(view.Members, taskapi.Member{Task: name, Type: "worker", Index: i, Rank: i})
		view.Here[name] = true
	}
	for _, name := range names {
		path := must.Get(h.Listen(taskapi.Task{ID: runkey.Task{Run: h.run, Task: name}, View: view}))(t)
		h.paths = append(h.paths, path)
	}
	return h
}

func (h *taskHost) RequestStop(_ context.Context, _ runkey.Task, wish spec.TogetherRequest) (spec.Stopping, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wishes = append(h.wishes, wish)
	if !h.now.Stop {
		h.now = spec.Stopping{Seq: h.now.Seq + 1, Stop: true, By: wish.Task, Reason: wish.Reason, Error: wish.Error}
	}
	return h.now, h.refuse
}

// command returns a command that task i calls. The name clusterrun runs this test binary.
func (h *taskHost) command(i int, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(cmd.Environ(), taskapi.SocketVar+"="+h.paths[i], "CLUSTERRUN_STATE_DIR="+h.t.TempDir())
	return cmd
}

// call runs a command as worker-0, and returns its output and exit code.
func (h *taskHost) call(stdin string, args ...string) (code int, stdout, stderr string) {
	h.t.Helper()
	cmd := h.command(0, "clusterrun", append([]string{"task"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		require.NoError(h.t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (h *taskHost) exits(want int, args ...string) (stderr string) {
	h.t.Helper()
	code, stdout, stderr := h.call("", args...)
	assert.Equal(h.t, want, code, "%s: %s", args, stderr)
	assert.Empty(h.t, stdout)
	return stderr
}

// A stop from a shell.
func TestTaskStop_CO01(t *testing.T) {
	h := newTaskHost(t)
	assert.Empty(t, h.exits(1, "should-stop"))
	assert.Empty(t, h.exits(0, "stop", "--reason", "loss is below 0.1"))
	assert.Empty(t, h.exits(0, "should-stop"))
	for _, args := range [][]string{{"should-stop"}, {"stop"}} {
		code, stdout, stderr := h.call("", append(args, "--json")...)
		assert.Zero(t, code, stderr)
		assert.JSONEq(t, `{"seq": 1, "stop": true, "by": "worker-0", "reason": "loss is below 0.1"}`, stdout)
	}
}

func TestTaskPreempted(t *testing.T) {
	h := newTaskHost(t)
	assert.Empty(t, h.exits(1, "preempted"))
	given := time.Now()
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Notice: &spec.StopNotice{
		From: spec.NoticeFromDrain, Given: given, Deadline: given.Add(time.Hour),
	}})
	code, stdout, stderr := h.call("", "preempted")
	assert.Zero(t, code, stderr)
	left := must.Get(strconv.Atoi(strings.TrimSuffix(stdout, "\n")))(t)
	assert.InDelta(t, 3600, left, 60)
	_, stdout, _ = h.call("", "preempted", "--json")
	assert.Contains(t, stdout, `"reason": "a host drains"`)
}

func TestTaskStopWithAnError(t *testing.T) {
	h := newTaskHost(t)
	h.exits(0, "stop", "--error", "disk full", "--kind", "IOError")
	code, _, stderr := h.call("from stdin\n", "stop", "--error", "-")
	assert.Zero(t, code, stderr)
	h.exits(0, "stop")
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Len(t, h.wishes, 3)
	assert.Equal(t, &spec.TogetherError{Kind: "IOError", Message: "disk full"}, h.wishes[0].Error)
	assert.Equal(t, &spec.TogetherError{Message: "from stdin\n"}, h.wishes[1].Error)
	assert.Nil(t, h.wishes[2].Error)
	assert.NotEqual(t, h.wishes[1].Key, h.wishes[2].Key)
}

func TestTaskStopMistakes(t *testing.T) {
	h := newTaskHost(t)
	for want, args := range map[string][]string{
		"--error and --reason: use only one of them": {"stop", "--error", "x", "--reason", "y"},
		"--kind IOError is the kind of an error":     {"stop", "--kind", "IOError"},
		"the message of --error is empty":            {"stop", "--error", ""},
		`unexpected argument "now"`:                  {"stop", "now"},
		`unexpected argument "x"`:                    {"should-stop", "x"},
		"unknown flag: --force; see `clusterr":       {"stop", "--force"},
	} {
		assert.Contains(t, h.exits(2, args...), want)
	}
	assert.Empty(t, h.wishes)
	for _, args := range [][]string{{"stop"}, {"should-stop"}, {"preempted"}} {
		code, stdout, _ := h.call("", append(args, "--help")...)
		assert.Zero(t, code)
		assert.Contains(t, stdout, "Exit codes:\n")
		assert.Contains(t, stdout, "Examples:\n  ")
		outside := exec.Command("clusterrun", append([]string{"task"}, args...)...)
		out, err := outside.CombinedOutput()
		require.Error(t, err)
		assert.Equal(t, 2, outside.ProcessState.ExitCode())
		assert.Contains(t, string(out), "CLUSTERRUN_SOCKET is not set: this command is for programs that are a run's tasks")
	}
}

func TestTaskStopRefused(t *testing.T) {
	h := newTaskHost(t)
	h.mu.Lock()
	h.refuse = errors.New("run iris has ended")
	h.mu.Unlock()
	assert.Contains(t, h.exits(125, "stop"), "run iris has ended")
	h = newTaskHost(t, func(c *taskapi.Config) { c.Stops = nil })
	for _, args := range [][]string{{"stop"}, {"should-stop"}, {"preempted"}} {
		assert.Contains(t, h.exits(125, args...), "does not support graceful stops")
	}
}

// A barrier in the foreground is withdrawn by SIGINT. With & a shell without job control
// ignores SIGINT, and so does the barrier.
func TestTaskBarrierInTheBackground(t *testing.T) {
	meet := meeting{arrived: make(chan context.Context), released: make(chan struct{})}
	h := newTaskHost(t, func(c *taskapi.Config) { c.Barriers = meet })
	foreground := h.command(0, "bash", "-c", "exec clusterrun task barrier x")
	require.NoError(t, foreground.Start())
	arrival := <-meet.arrived
	require.NoError(t, foreground.Process.Signal(syscall.SIGINT))
	<-arrival.Done()
	require.Error(t, foreground.Wait())
	assert.Equal(t, exitcode.Interrupted, foreground.ProcessState.ExitCode())

	background := h.command(0, "bash", "-c", "trap '' INT; exec clusterrun task barrier x")
	require.NoError(t, background.Start())
	<-meet.arrived
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", background.Process.Pid)))(t)
	_, mask, _ := strings.Cut(string(status), "SigIgn:\t")
	ignored := must.Get(strconv.ParseUint(mask[:16], 16, 64))(t)
	assert.NotZero(t, ignored&(1<<(syscall.SIGINT-1)), "it stays ignored")
	require.NoError(t, background.Process.Signal(syscall.SIGINT))
	close(meet.released)
	require.NoError(t, background.Wait())
}

// meeting releases all barriers when the test closes released.
type meeting struct {
	arrived  chan context.Context
	released chan struct{}
}

func (m meeting) Arrive(ctx context.Context, _ barriers.Arrival) (barriers.Release, error) {
	m.arrived <- ctx
	select {
	case <-m.released:
		return barriers.Release{Round: 0}, nil
	case <-ctx.Done():
		return barriers.Release{}, ctx.Err()
	}
}
