package outcome

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestDoing(t *testing.T) {
	task := func(state spec.TaskState, host string, cause spec.Cause) TaskStatus {
		s := TaskStatus{TaskStatus: spec.TaskStatus{State: state, Host: host}}
		if cause != "" {
			s.Exit = &spec.Exit{Cause: cause}
		}
		return s
	}
	again := task(spec.TaskRunning, "a", "")
	again.NextStart = time.Unix(1, 0)
	s := &Status{
		Silent: []SilentHost{{Host: "b"}},
		Tasks: []TaskStatus{
			again, task("", "", ""), task(spec.TaskRunning, "b", ""), task(spec.TaskPending, "", ""),
			task(spec.TaskEnded, "a", spec.CauseCompleted), task(spec.TaskEnded, "a", spec.CauseOrigin), task(spec.TaskEnded, "b", spec.CauseHostLost),
			task(spec.TaskEnded, "a", spec.CauseOperator), task(spec.TaskEnded, "a", spec.CauseTimeout), task(spec.TaskEnded, "a", spec.CauseOOM),
		},
	}
	words := s.Doing()
	assert.Equal(t, []string{"restarting", "unknown", "missing", "pending", "ended", "failed", "failed", "ended", "ended", "failed"}, words)
	assert.Equal(t, "1 pending, 1 restarting, 3 ended, 3 failed, 1 missing, 1 unknown", TallyOf(words).String())
	assert.Empty(t, TallyOf(nil).String())
}

func TestOddTasks(t *testing.T) {
	words := slices.Repeat([]string{"running"}, 38)
	assert.Empty(t, Odd(words))
	assert.Empty(t, Odd(nil))
	words[5], words[6], words[7] = "missing", "ended", "failed"
	assert.Equal(t, []int{7, 5, 6}, Odd(append(words, "running", "running")))
	words[8], words[9] = "ended", "ended"
	assert.Equal(t, []int{7, 5}, Odd(words), "three of 38 are not few")
}
