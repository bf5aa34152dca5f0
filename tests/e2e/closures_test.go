package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// serving is a task group that serves the functions in testdata/closures/serve.py.
func (f *fixture) serving(typ string, count int) spec.TaskGroup {
	f.t.Helper()
	return f.python(typ, count, "closures/serve.py")
}

// serve starts a run of serving tasks with restarts.
func (f *fixture) serve(count int) client.WorkflowRun {
	f.t.Helper()
	return f.start(&spec.RunSpec{
		AutoRestart: true, Tasks: []spec.TaskGroup{f.serving("worker", count)},
	})
}

// coordinator attaches to a run's queue.
func (f *fixture) coordinator(run client.WorkflowRun) *clustercoordinator.Coordinator {
	f.t.Helper()
	c := must.Get(clustercoordinator.New(f.t.Context(), starter.Get(f.client, run.GetID(), run.GetRunID())))(f.t)
	f.t.Cleanup(c.Close)
	return c
}

// bounded returns a context with a timeout, so that a missing event does not hang the test.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// schedule schedules one closure, which the queue must accept.
func schedule(t *testing.T, c *clustercoordinator.Coordinator, function string, args ...any) *clustercoordinator.RemoteValue {
	t.Helper()
	v := must.Get(c.Schedule(bounded(t), function, args...))(t)
	return v
}

// fetched returns a closure's value, which must exist.
func fetched[T any](t *testing.T, v *clustercoordinator.RemoteValue) T {
	t.Helper()
	got := must.Get(clustercoordinator.Get[T](bounded(t), v))(t)
	return got
}

// fetchError returns a closure's error.
func fetchError(t *testing.T, v *clustercoordinator.RemoteValue) *closure.Error {
	t.Helper()
	_, err := v.JSON(bounded(t))
	var e *closure.Error
	require.ErrorAs(t, err, &e)
	return e
}

// calls returns the functions' notes: the number of each line, without its task.
func (f *fixture) calls() map[string]int {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(f.t, err)
	}
	if f.noted == nil {
		f.noted = map[string]int{}
	}
	// Lines are read only once, since there are many.
	end := bytes.LastIndexByte(b, '\n') + 1
	for line := range strings.Lines(string(b[f.read:end])) {
		fields := strings.Fields(line)
		f.noted[strings.Join(fields[:2], " ")]++
	}
	f.read = end
	return f.noted
}

// called waits until a function has noted a line n times.
func (f *fixture) called(line string, times int) {
	f.t.Helper()
	harness.Eventually(f.t, line, func() bool { return f.calls()[line] >= times })
}

// servers returns the serving processes of one or all tasks.
func (f *fixture) servers(task string) []int {
	var pids []int
	for _, pid := range harness.Alive(f.mark) {
		if env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); strings.Contains(harness.Cmdline(pid), "serve.py") && strings.Contains(string(env), "CLUSTERRUN_TASK="+task) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (f *fixture) status(c *clustercoordinator.Coordinator) closure.QueueStatus {
	f.t.Helper()
	s := must.Get(c.Status(bounded(f.t)))(f.t)
	return s
}

// awaitServing waits until n tasks serve.
func (f *fixture) awaitServing(c *clustercoordinator.Coordinator, tasks int) {
	f.t.Helper()
	harness.Eventually(f.t, "tasks serve", func() bool { return len(f.status(c).Workers) == tasks })
}
