package e2e

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// iterators are those that tasks hold.
func (f *fixture) iterators() []string {
	f.t.Helper()
	found, err := filepath.Glob(filepath.Join(f.dir, "iterator-*"))
	require.NoError(f.t, err)
	return found
}

// touch makes a file that programs wait for.
func (f *fixture) touch(name string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.dir, name), nil, 0o644))
}

// CC-29, SEED-45: however many iterators a coordinator makes, in Python as in Go, its
// tasks hold those that it still refers to, and the queue knows of no others. That
// survives the end of processes, and executions of the queue that continue as new.
func TestIteratorsAreReleased(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=1000"))
	run := f.start(&spec.RunSpec{
		AutoRestart: true, Tasks: []spec.TaskGroup{f.python("chief", 1, "closures/iterators.py"), f.serving("worker", 3)},
	})
	c := f.coordinator(run)
	known := func(n int) {
		t.Helper()
		harness.Eventually(t, "the queue knows of no others", func() bool { return f.status(c).Counts.Resource == n })
	}

	f.file("one-left")
	known(1)
	harness.Eventually(t, "workers hold one of 200", func() bool { return len(f.iterators()) <= 3 })
	assert.NotEmpty(t, f.iterators())
	f.touch("go-on")
	f.file("none-left")
	known(0)
	harness.Eventually(t, "workers hold none", func() bool { return len(f.iterators()) == 0 })

	// From outside of the run, released by hand and by the garbage collector.
	held, err := c.CreatePerWorkerResource(bounded(t), "rows")
	require.NoError(t, err)
	take := func(r clustercoordinator.PerWorkerValues) *clustercoordinator.RemoteValue {
		t.Helper()
		return schedule(t, c, "row", r)
	}
	fetched[any](t, take(held))
	for range 20 {
		r, err := c.CreatePerWorkerResource(bounded(t), "rows")
		require.NoError(t, err)
		v := take(r)
		r.Release()
		fetched[any](t, v)
		_, err = c.Schedule(bounded(t), "row", r)
		require.ErrorContains(t, err, "was released; create another one")
	}
	func() {
		r, err := c.CreatePerWorkerResource(bounded(t), "rows")
		require.NoError(t, err)
		fetched[any](t, take(r))
	}()
	harness.Eventually(t, "the garbage collector releases the last one", func() bool {
		runtime.GC()
		return f.status(c).Counts.Resource == 1
	})
	harness.Eventually(t, "workers hold one of 22", func() bool { return len(f.iterators()) == 1 })

	// Of 20,000 the state machine's own test can tell; they take minutes here.
	const more, together = 2000, 32
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for range more / together {
				r, err := c.CreatePerWorkerResource(context.WithoutCancel(t.Context()), "rows")
				if !assert.NoError(t, err) {
					return
				}
				r.Release()
			}
		})
	}
	all.Wait()
	known(1)
	assert.Greater(t, len(f.status(c).Executions), 2, "the history is bounded")
	fetched[any](t, take(held))
	assert.LessOrEqual(t, len(f.iterators()), 3)
	held.Release()
	harness.Eventually(t, "workers hold none", func() bool { return len(f.iterators()) == 0 })
	f.touch("end")
	assert.Equal(t, 0, f.result(run).ExitCode)
}
