package e2e

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// serving is a group of tasks that serve the functions of testdata/closures/serve.py.
func (f *fixture) serving(typ string, count int) spec.TaskGroup {
	f.t.Helper()
	return f.python(typ, count, "closures/serve.py")
}

// serve starts a run of tasks that serve, whose processes are started again.
func (f *fixture) serve(count int) client.WorkflowRun {
	f.t.Helper()
	return f.start(&spec.RunSpec{
		AutoRestart: true, Tasks: []spec.TaskGroup{f.serving("worker", count)},
	})
}

// coordinator attaches to the queue of a run.
func (f *fixture) coordinator(run client.WorkflowRun) *clustercoordinator.Coordinator {
	f.t.Helper()
	c, err := clustercoordinator.New(f.t.Context(), starter.Get(f.client, run.GetID(), run.GetRunID()))
	require.NoError(f.t, err)
	f.t.Cleanup(c.Close)
	return c
}

// bounded is for what has to come, and would otherwise hang the test.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// schedule schedules one closure, which has to be taken.
func schedule(t *testing.T, c *clustercoordinator.Coordinator, function string, args ...any) *clustercoordinator.RemoteValue {
	t.Helper()
	v, err := c.Schedule(bounded(t), function, args...)
	require.NoError(t, err)
	return v
}

func scheduleCall(t *testing.T, c *clustercoordinator.Coordinator, o closure.Options, function string, args ...any) *clustercoordinator.RemoteValue {
	t.Helper()
	v, err := c.ScheduleWith(bounded(t), o, function, args, nil)
	require.NoError(t, err)
	return v
}

// fetched is the value of a closure that has to have one.
func fetched[T any](t *testing.T, v *clustercoordinator.RemoteValue) T {
	t.Helper()
	got, err := clustercoordinator.Get[T](bounded(t), v)
	require.NoError(t, err)
	return got
}

// closureError is the error of a closure.
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

// calls are what the functions have noted, by line without the task.
func (f *fixture) calls() map[string]int {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(f.t, err)
	}
	if f.noted == nil {
		f.noted = map[string]int{}
	}
	// What was read before is not read again: there are many lines.
	end := bytes.LastIndexByte(b, '\n') + 1
	for line := range strings.Lines(string(b[f.read:end])) {
		fields := strings.Fields(line)
		f.noted[strings.Join(fields[:2], " ")]++
	}
	f.read = end
	return f.noted
}

// called waits until a function has noted a line that many times.
func (f *fixture) called(line string, times int) {
	f.t.Helper()
	harness.Eventually(f.t, line, func() bool { return f.calls()[line] >= times })
}

// servers are the processes that serve, of all tasks or of one.
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
	s, err := c.Queue().Status(bounded(f.t))
	require.NoError(f.t, err)
	return s
}

// awaitServing waits until that many tasks serve.
func (f *fixture) awaitServing(c *clustercoordinator.Coordinator, tasks int) {
	f.t.Helper()
	harness.Eventually(f.t, "tasks serve", func() bool { return len(f.status(c).Workers) == tasks })
}

// What a coordinator and those who serve can do with each other, in one run.
func TestClosures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	require.NoError(t, c.Join(bounded(t)), "nothing was scheduled")
	f.awaitServing(c, 2)
	var last *clustercoordinator.RemoteValue

	t.Run("values", func(t *testing.T) { testClosureValues(t, f, run, c) })
	t.Run("errors", func(t *testing.T) { testClosureErrors(t, f, run, c) })
	t.Run("options", func(t *testing.T) { testClosureOptions(t, f, c) })
	t.Run("requests that are refused", func(t *testing.T) { testRefusedClosures(t, f, run) })
	t.Run("processes that die", func(t *testing.T) { last = testPreempted(t, f, c) })

	t.Run("after the run", func(t *testing.T) {
		id, err := last.ID(bounded(t))
		require.NoError(t, err)
		f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		f.result(run)
		_, err = c.Schedule(bounded(t), "square", 1)
		if err == nil { // the end has not come here yet
			err = c.Join(bounded(t))
		}
		require.Error(t, err)
		assert.Contains(t, err.Error(), "ended")
		q, err := starter.Get(f.client, run.GetID(), "").Closures(bounded(t))
		require.NoError(t, err)
		defer q.Close()
		r, err := q.Fetch(bounded(t), id)
		require.NoError(t, err)
		value, err := r.Wait(bounded(t))
		require.NoError(t, err)
		assert.JSONEq(t, "[1,-1]", string(value))
		_, err = q.Fetch(bounded(t), 1_000_000)
		assert.ErrorContains(t, err, "there is no closure 1000000")
	})
}

func testClosureValues(t *testing.T, f *fixture, run client.WorkflowRun, c *clustercoordinator.Coordinator) {
	t.Run("one", func(t *testing.T) {
		v := schedule(t, c, "square", 7)
		assert.Equal(t, 49, fetched[int](t, v))
		assert.Equal(t, clustercoordinator.Ready, v.State())
		v, err := c.ScheduleWith(bounded(t), closure.Options{}, "echo", []any{nil, "ü"}, map[string]any{"a": []int{1}})
		require.NoError(t, err)
		assert.Equal(t, []any{[]any{nil, "ü"}, map[string]any{"a": []any{1.0}}}, fetched[any](t, v))
	})
	t.Run("CC-15 nested values", func(t *testing.T) {
		want := []any{map[string]any{"tuple": []any{1.0, 2.5, nil}, "list": []any{true, []any{"a", []any{}}}}, "é"}
		v := schedule(t, c, "nested")
		assert.Equal(t, want, fetched[any](t, v))
		got, err := clustercoordinator.Fetch(bounded(t), v)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	})
	t.Run("CC-16 a list of remote values", func(t *testing.T) {
		var list []*clustercoordinator.RemoteValue
		for i := range 5 {
			list = append(list, schedule(t, c, "square", i))
		}
		got, err := clustercoordinator.Fetch(bounded(t), list)
		require.NoError(t, err)
		assert.Equal(t, []any{0.0, 1.0, 4.0, 9.0, 16.0}, got)
	})
	t.Run("CC-18 schedule and join", func(t *testing.T) {
		for i := range 5 {
			schedule(t, c, "square", 1000+i)
		}
		require.NoError(t, c.Join(bounded(t)))
		for i := range 5 {
			schedule(t, c, "square", 1005+i)
		}
		for range 3 {
			require.NoError(t, c.Join(bounded(t)))
		}
		done, err := c.Done(bounded(t))
		require.NoError(t, err)
		assert.True(t, done)
		for i := range 10 {
			assert.Equal(t, 1, f.calls()[fmt.Sprintf("square %d", 1000+i)])
		}
	})
	t.Run("CC-22 a resource of each process", func(t *testing.T) {
		r, err := c.CreatePerWorkerResource(bounded(t), "counter", 0)
		require.NoError(t, err)
		most := map[string]int{}
		var values []*clustercoordinator.RemoteValue
		for range 10 {
			values = append(values, schedule(t, c, "count", r))
		}
		require.NoError(t, c.Join(bounded(t)))
		for _, v := range values {
			pair := fetched[[]any](t, v)
			most[pair[0].(string)] = max(most[pair[0].(string)], int(pair[1].(float64)))
		}
		assert.Equal(t, 10, most["worker-0"]+most["worker-1"])
		assert.Equal(t, len(most), f.calls()["counter 0"], "each process that called it has built it once")
	})
	t.Run("CC-24 a RemoteValue is no argument", func(t *testing.T) {
		_, err := c.Schedule(bounded(t), "square", []any{schedule(t, c, "square", 1)})
		require.ErrorIs(t, err, clustercoordinator.ErrRemoteValue)
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("CC-14 a second coordinator has the same queue", func(t *testing.T) {
		v := schedule(t, c, "square", 12)
		id, err := v.ID(bounded(t))
		require.NoError(t, err)
		other := f.coordinator(run)
		assert.Equal(t, c.Queue().ID(), other.Queue().ID())
		r, err := other.Queue().Fetch(bounded(t), id)
		require.NoError(t, err)
		value, err := r.Wait(bounded(t))
		require.NoError(t, err)
		assert.JSONEq(t, "144", string(value))
		require.NoError(t, other.Join(bounded(t)))
	})
}

func testClosureErrors(t *testing.T, f *fixture, run client.WorkflowRun, c *clustercoordinator.Coordinator) {
	wrong := func(t *testing.T, err error) {
		t.Helper()
		e := closureError(t, err)
		assert.Equal(t, "ValueError", e.Kind)
		assert.Contains(t, e.Message, "on purpose")
		assert.Contains(t, e.Traceback, "serve.py")
	}
	t.Run("CC-32 CC-35 CC-36 join raises, once for each error", func(t *testing.T) {
		for range 2 {
			for i := range 3 {
				schedule(t, c, "square", i)
			}
			v := schedule(t, c, "fail")
			wrong(t, c.Join(bounded(t)))
			_, err := v.JSON(bounded(t))
			wrong(t, err)
			require.NoError(t, c.Join(bounded(t)))
		}
	})
	t.Run("CC-33 schedule raises", func(t *testing.T) {
		schedule(t, c, "fail")
		var err error
		harness.Eventually(t, "schedule raises", func() bool {
			_, err = c.Schedule(bounded(t), "square", 3)
			return err != nil
		})
		wrong(t, err)
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("CC-34 many errors are one", func(t *testing.T) {
		var err error
		harness.Eventually(t, "schedule raises", func() bool {
			_, err = c.Schedule(bounded(t), "fail")
			return err != nil
		})
		wrong(t, err)
		if err := c.Join(bounded(t)); err != nil {
			// What was scheduled after the first error had been raised can fail anew.
			wrong(t, err)
		}
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("CC-37 CC-38 a resource that cannot be built", func(t *testing.T) {
		r, err := c.CreatePerWorkerResource(bounded(t), "broken")
		require.NoError(t, err)
		v := schedule(t, c, "square", 3)
		require.NoError(t, c.Join(bounded(t)), "nobody used it")
		assert.Equal(t, 9, fetched[int](t, v))
		v = schedule(t, c, "echo", r)
		err = c.Join(bounded(t))
		assert.Equal(t, closure.ErrInput, closureError(t, err).Kind, err)
		assert.Equal(t, closure.ErrInput, fetchError(t, v).Kind)
	})
	t.Run("CC-39 a very long one is cancelled", func(t *testing.T) {
		long := schedule(t, c, "hold", "never")
		f.called("hold never", 1)
		schedule(t, c, "square", 2)
		schedule(t, c, "fail")
		wrong(t, c.Join(bounded(t)))
		e := fetchError(t, long)
		assert.Equal(t, closure.ErrCancelled, e.Kind)
		assert.Equal(t, closure.TextCancelled, e.Message)
		for i := range 3 {
			schedule(t, c, "square", i)
		}
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("CC-40 a resource after an error", func(t *testing.T) {
		r, err := c.CreatePerWorkerResource(bounded(t), "counter", 40)
		require.NoError(t, err)
		schedule(t, c, "count", r)
		schedule(t, c, "fail")
		require.Error(t, c.Join(bounded(t)))
		v := schedule(t, c, "count", r)
		require.NoError(t, c.Join(bounded(t)))
		assert.Greater(t, fetched[[]any](t, v)[1].(float64), 40.0)
	})
}

func testClosureOptions(t *testing.T, f *fixture, c *clustercoordinator.Coordinator) {
	t.Run("timeout", func(t *testing.T) {
		v := scheduleCall(t, c, closure.Options{Timeout: closure.TimeoutOf(200 * time.Millisecond), Detached: true}, "hold", "too-long")
		e := fetchError(t, v)
		assert.Equal(t, closure.ErrTimeout, e.Kind)
		assert.Contains(t, e.Message, "hold has not ended within its timeout of 200ms")
	})
	t.Run("quarantine", func(t *testing.T) {
		before := f.calls()["die 0"]
		v := scheduleCall(t, c, closure.Options{MaxLosses: ptr(1)}, "die")
		e := fetchError(t, v)
		assert.Equal(t, closure.ErrQuarantined, e.Kind)
		assert.Contains(t, e.Message, "2 processes ended under it")
		assert.Equal(t, before+2, f.calls()["die 0"])
		require.Error(t, c.Join(bounded(t)))
	})
	t.Run("pause, and order", func(t *testing.T) {
		f.awaitServing(c, 2)
		s, err := c.Queue().Pause(bounded(t), "lunch")
		require.NoError(t, err)
		assert.Equal(t, closure.QueuePaused, s.State)
		// All for one task, so that there is an order to see.
		var order []*clustercoordinator.RemoteValue
		for i := range 3 {
			order = append(order, scheduleCall(t, c, closure.Options{Task: "worker-1"}, "square", 2000+i))
		}
		require.NoError(t, c.Queue().Flush(bounded(t)))
		s = f.status(c)
		assert.Equal(t, 3, s.Counts.Queued)
		assert.Equal(t, "lunch", s.Paused)
		assert.Zero(t, s.Counts.Executing)
		_, err = c.Queue().Resume(bounded(t))
		require.NoError(t, err)
		require.NoError(t, c.Join(bounded(t)))
		for i, v := range order {
			assert.Equal(t, (2000+i)*(2000+i), fetched[int](t, v))
		}
		b, err := os.ReadFile(filepath.Join(f.dir, "calls"))
		require.NoError(t, err)
		var called []string
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "square 200") {
				called = append(called, strings.TrimSpace(line))
			}
		}
		assert.Equal(t, []string{"square 2000 worker-1", "square 2001 worker-1", "square 2002 worker-1"}, called)
	})
	t.Run("a key is one closure", func(t *testing.T) {
		ids := map[uint64]bool{}
		for range 3 {
			v := scheduleCall(t, c, closure.Options{Key: "once"}, "square", 3000)
			assert.Equal(t, 9_000_000, fetched[int](t, v))
			id, err := v.ID(bounded(t))
			require.NoError(t, err)
			ids[id] = true
		}
		assert.Len(t, ids, 1)
		assert.Equal(t, 1, f.calls()["square 3000"])
	})
}

func testRefusedClosures(t *testing.T, f *fixture, run client.WorkflowRun) {
	t.Run("an unknown function", func(t *testing.T) {
		c := f.coordinator(run)
		v, err := c.Schedule(bounded(t), "sqare", 1)
		require.NoError(t, err)
		_, err = v.JSON(bounded(t))
		require.ErrorContains(t, err, "sqare")
		require.ErrorContains(t, err, "square", "the functions there are")
		require.ErrorContains(t, c.Join(bounded(t)), "sqare")
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("an argument of 10 MB", func(t *testing.T) {
		c := f.coordinator(run)
		_, err := c.Schedule(bounded(t), "echo", strings.Repeat("x", 10<<20))
		require.ErrorContains(t, err, fmt.Sprintf("they may have %d", closure.MaxBytes))
		require.ErrorContains(t, err, "pass large data in files")
		_, err = c.CreatePerWorkerResource(bounded(t), "counter", strings.Repeat("x", 10<<20))
		require.ErrorContains(t, err, "pass large data in files")
		require.NoError(t, c.Join(bounded(t)), "nothing was scheduled")
		assert.Equal(t, 4, fetched[int](t, schedule(t, c, "square", 2)), "others are taken")
	})
	t.Run("a value that is too large", func(t *testing.T) {
		c := f.coordinator(run)
		v := schedule(t, c, "large", closure.MaxBytes)
		assert.Equal(t, closure.ErrValueTooLarge, fetchError(t, v).Kind)
		require.NoError(t, c.Join(bounded(t)), "it is the error of that closure alone")
		v = schedule(t, c, "large", closure.MaxBytes-2)
		assert.Len(t, fetched[string](t, v), closure.MaxBytes-2)
	})
}

// testPreempted kills those who serve. It returns a value that a process brought which
// is dead.
func testPreempted(t *testing.T, f *fixture, c *clustercoordinator.Coordinator) *clustercoordinator.RemoteValue {
	kill := func(tasks ...string) {
		t.Helper()
		for _, task := range tasks {
			for _, pid := range f.servers(task) {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
	}
	t.Run("CC-61 between functions", func(t *testing.T) {
		for i := range 2 {
			schedule(t, c, "square", 6100+i)
		}
		require.NoError(t, c.Join(bounded(t)))
		kill("worker-0")
		for i := range 2 {
			schedule(t, c, "square", 6102+i)
		}
		require.NoError(t, c.Join(bounded(t)))
		for i := range 4 {
			assert.Equal(t, 1, f.calls()[fmt.Sprintf("square %d", 6100+i)])
		}
	})
	for _, test := range []struct {
		name   string
		killed [][]string
	}{
		{"CC-62 midst a function", [][]string{{"worker-0"}}},
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
				done, err := c.Done(bounded(t))
				require.NoError(t, err)
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
	v := schedule(t, c, "echo")
	t.Run("CC-72 a value outlives its worker", func(t *testing.T) {
		v = schedule(t, c, "pair")
		first := fetched[[]int](t, v)
		kill("worker-0", "worker-1")
		assert.Equal(t, first, fetched[[]int](t, v))
		assert.Equal(t, []int{1, -1}, first)
	})
	return v
}

// fetchID is the value of a closure by its ID.
func fetchID(t *testing.T, q *closurequeue.Queue, id uint64) json.RawMessage {
	t.Helper()
	r, err := q.Fetch(bounded(t), id)
	require.NoError(t, err)
	value, err := r.Wait(bounded(t))
	require.NoError(t, err)
	return value
}
