package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// closureError returns a closure's error.
func closureError(t *testing.T, err error) *closure.Error {
	t.Helper()
	var e *closure.Error
	require.ErrorAs(t, err, &e)
	return e
}

func fetchError(t *testing.T, v *clustercoordinator.RemoteValue) *closure.Error {
	t.Helper()
	_, err := v.JSON(bounded(t))
	return closureError(t, err)
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

// Coordinators and serving tasks can use all features with each other in one run.
func TestClosures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	require.NoError(t, c.Join(bounded(t)), "nothing was scheduled")
	f.awaitServing(c, 2)
	t.Run("values", func(t *testing.T) {
		v := must.Get(c.ScheduleWith(bounded(t), "echo", []any{nil, "ü"}, map[string]any{"a": []int{1}}))(t)
		assert.Equal(t, []any{[]any{nil, "ü"}, map[string]any{"a": []any{1.0}}}, fetched[any](t, v))
	})
	t.Run("errors", func(t *testing.T) {
		v := schedule(t, c, "fail")
		for _, err := range []error{c.Join(bounded(t)), fetchError(t, v)} {
			e := closureError(t, err)
			assert.Equal(t, "ValueError", e.Kind)
			assert.Contains(t, e.Message, "on purpose")
			assert.Contains(t, e.Traceback, "serve.py")
		}
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("processes that die", func(t *testing.T) { testPreempted(t, f, c) })

	t.Run("after the run", func(t *testing.T) {
		f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		f.result(run)
		_, err := c.Schedule(bounded(t), "square", 1)
		if err == nil { // the end is not yet known here
			err = c.Join(bounded(t))
		}
		require.Error(t, err)
		assert.Contains(t, err.Error(), "ended")
	})
}

// testPreempted kills the serving processes.
func testPreempted(t *testing.T, f *fixture, c *clustercoordinator.Coordinator) {
	kill := func(tasks ...string) {
		t.Helper()
		for _, task := range tasks {
			for _, pid := range f.servers(task) {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
	}
	for _, test := range []struct {
		name   string
		killed [][]string
	}{
		{"CC-69 two workers", [][]string{{"worker-0", "worker-1"}}},
		{"CC-70 again and again", [][]string{{"worker-0"}, {"worker-0"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.awaitServing(c, 2)
			release := strings.ReplaceAll(test.name, " ", "-")
			var values []*clustercoordinator.RemoteValue
			for range 10 {
				values = append(values, schedule(t, c, "hold", release))
			}
			for round, tasks := range test.killed {
				f.called("hold "+release, 2+round)
				harness.Eventually(t, "all that are to be killed live", func() bool { return len(f.servers("worker-0")) == 1 && len(f.servers("worker-1")) == 1 })
				done := must.Get(c.Done(bounded(t)))(t)
				assert.False(t, done)
				kill(tasks...)
			}
			touch(t, f, release)
			require.NoError(t, c.Join(bounded(t)))
			for _, v := range values {
				assert.Equal(t, release, fetched[string](t, v))
			}
			assert.GreaterOrEqual(t, f.calls()["released "+release], 10)
		})
	}
}
