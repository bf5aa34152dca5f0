package control

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// While a task still has its earlier process, the run refuses to start it.
func TestWhetherATaskStillHasItsProcess(t *testing.T) {
	task := func(state spec.TaskState, pid int) (s starter.TaskStatus) {
		s.State, s.PID = state, pid
		return s
	}
	before := task(spec.TaskRunning, 7)
	assert.True(t, isSame(before, before))
	assert.True(t, isSame(before, task(spec.TaskStopping, 7)))
	assert.False(t, isSame(before, task(spec.TaskEnded, 7)))
	assert.False(t, isSame(before, task(spec.TaskRunning, 8)), "its successor runs")
	waits := task(spec.TaskRunning, 7)
	waits.NextStart = time.Unix(1, 0)
	assert.False(t, isSame(before, waits), "it waits to be started again")
	assert.False(t, isSame(before, starter.TaskStatus{}), "the run does not have it any more")
}

// A run terminated on the server may have processes on silent hosts, which are named.
func TestMayLive(t *testing.T) {
	task := func(name string, state spec.TaskState, pid int, next time.Time) starter.TaskStatus {
		return starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Host: "a", State: state}, PID: pid, NextStart: next}
	}
	assert.Equal(t, []string{"worker-0 on a", "worker-3 on a"}, mayLive(&starter.Status{Tasks: []starter.TaskStatus{
		task("worker-0", spec.TaskRunning, 7, time.Time{}), task("worker-1", spec.TaskEnded, 7, time.Time{}),
		task("worker-2", spec.TaskPending, 0, time.Time{}), task("worker-3", spec.TaskRunning, 0, time.Now()),
	}}))
	assert.Empty(t, mayLive(nil))
}
