package taskapi

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The clock of a process stops while it waits, in one thread or in several.
func TestWaitsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed []float64
		w := newWork(func(seconds float64) { observed = append(observed, seconds) })
		assert.Nil(t, w.stepTime())
		for range 11 {
			time.Sleep(2 * time.Second)
			first, second := w.wait(), w.wait()
			time.Sleep(time.Hour)
			first(true)
			first(true) // as for an arrival whose connection is cut after its answer
			time.Sleep(time.Hour)
			second(false)
		}
		assert.Equal(t, &spec.StepTime{Seconds: 2, Steps: 10, Barriers: true}, w.stepTime())
		assert.Equal(t, []float64{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, observed)
		for i := range 11 {
			time.Sleep(3 * time.Second)
			w.progress(float64(4 * i))
		}
		assert.Equal(t, &spec.StepTime{Seconds: 0.75, Steps: 40}, w.stepTime())
	})
}

// Barriers of all tasks are rounds, and no others; the next process begins again.
func TestRoundsAreSteps(t *testing.T) {
	h := newHost(t, 2)
	meet := func(options ...task.Option) {
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() {
				_, err := h.task(i).Barrier(testContext(t), "step", options...)
				assert.NoError(t, err)
			})
		}
		group.Wait()
	}
	h.view.Tasks = append(h.view.Tasks, "ps-0")
	for range 3 {
		meet(task.Participants("worker-0", "worker-1"), task.Local())
	}
	assert.Nil(t, h.StepTime(h.ids[0]), "ps-0 was not there")
	h.view.Tasks = h.view.Tasks[:2]
	for _, options := range [][]task.Option{{task.Local()}, {}, {task.Timeout(time.Minute)}} {
		meet(options...)
	}
	for _, id := range h.ids {
		require.NotNil(t, h.StepTime(id))
		assert.Equal(t, spec.StepTime{Steps: 2, Barriers: true}, *h.StepTime(id))
		assert.Equal(t, h.StepTime(id), h.StepTimes()[id])
	}
	assert.Equal(t, 0, h.tasks[h.ids[0]].work.waits)
	h.listen(0, 1)
	assert.Nil(t, h.StepTime(h.ids[0]))
	for step, want := range []*spec.StepTime{nil, {Steps: 1}, {Steps: 2}} {
		status, body, _ := h.do(0, "PUT", wire.PathProgress, fmt.Sprintf(`{"current": %d}`, step))
		require.Equal(t, 200, status, body)
		assert.Equal(t, want, h.StepTime(h.ids[0]))
	}
}
