package run

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// If a run stops, its owner gets the reason from the run. A task that was stopped with it does
// not count.
func TestEndedWell(t *testing.T) {
	task := func(name string, state spec.TaskState, cause spec.Cause) starter.TaskStatus {
		s := starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, State: state}}
		if cause != "" {
			s.Exit = &spec.Exit{Cause: cause}
		}
		return s
	}
	running := task("worker-0", spec.TaskRunning, "")
	done := task("worker-1", spec.TaskEnded, spec.CauseCompleted)
	killed := task("worker-2", spec.TaskEnded, spec.CauseOrigin)
	for name, c := range map[string]struct {
		state spec.RunState
		tasks []starter.TaskStatus
		want  string
	}{
		"all run":                      {spec.RunRunning, []starter.TaskStatus{running, running}, ""},
		"one is done":                  {spec.RunRunning, []starter.TaskStatus{running, done}, "worker-1"},
		"one that never had a process": {spec.RunRunning, []starter.TaskStatus{running, task("worker-1", spec.TaskEnded, "")}, "worker-1"},
		"one has failed":               {spec.RunRunning, []starter.TaskStatus{killed, running}, ""},
		"a failure stops the others":   {spec.RunStopping, []starter.TaskStatus{done, killed}, ""},
		"which are gone":               {spec.RunReleasing, []starter.TaskStatus{done, killed}, ""},
		"the run has ended":            {spec.RunEnded, []starter.TaskStatus{done, killed}, ""},
		"the group is restarted":       {spec.RunRestarting, []starter.TaskStatus{done, killed}, ""},
		"nobody answers for the run":   {"", []starter.TaskStatus{done}, ""},
	} {
		assert.Equal(t, c.want, endedWell(&starter.Status{State: c.state, Tasks: c.tasks}), name)
	}
}
