package report

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestProgressColumn(t *testing.T) {
	assert.Equal(t, "-", ProgressColumn(nil))
	assert.Equal(t, "7", ProgressColumn(&spec.Progress{Current: 7}))
	assert.Equal(t, "42% (420/1000) loss 0.3", ProgressColumn(&spec.Progress{Current: 420, Total: 1000, Message: "loss 0.3"}))
	assert.Equal(t, "99% (2.99/3)", ProgressColumn(&spec.Progress{Current: 2.99, Total: 3}), "not done before it is")
	assert.Equal(t, "100% (5/3)", ProgressColumn(&spec.Progress{Current: 5, Total: 3}))
}

func TestProgressLine(t *testing.T) {
	now := time.Now()
	task := func(state spec.TaskState, started time.Duration, p *spec.Progress) starter.TaskStatus {
		return starter.TaskStatus{TaskStatus: spec.TaskStatus{State: state}, Started: now.Add(-started), Progress: p}
	}
	line := func(tasks ...starter.TaskStatus) string { return ProgressLine(&starter.Status{Tasks: tasks}, now) }
	assert.Empty(t, line(task(spec.TaskRunning, time.Minute, nil), task(spec.TaskRunning, time.Minute, &spec.Progress{Current: 3})))
	assert.Equal(t, " · 0%", line(task(spec.TaskRunning, time.Minute, &spec.Progress{Total: 3})), "nobody can tell yet")
	assert.Equal(t, " · 25..50%, 3m0s left", line(
		task(spec.TaskRunning, time.Minute, &spec.Progress{Current: 1, Total: 4}),
		task(spec.TaskRunning, time.Minute, &spec.Progress{Current: 2, Total: 4}),
		task(spec.TaskEnded, time.Minute, &spec.Progress{Current: 1, Total: 100}),
	), "of the slowest that runs")
	assert.Equal(t, " · 100%", line(task(spec.TaskRunning, time.Minute, &spec.Progress{Current: 4, Total: 4})))
}

// Programs may report any numbers.
func TestExtremeProgress(t *testing.T) {
	for _, p := range []spec.Progress{
		{Current: math.MaxFloat64, Total: math.SmallestNonzeroFloat64}, {Current: math.SmallestNonzeroFloat64, Total: math.MaxFloat64},
		{Current: math.MaxFloat64, Total: math.MaxFloat64}, {Total: math.MaxFloat64},
	} {
		assert.Regexp(t, `^(0|100)% \(\S+/\S+\)$`, ProgressColumn(&p))
		s := &starter.Status{Tasks: []starter.TaskStatus{{
			TaskStatus: spec.TaskStatus{State: spec.TaskRunning}, Started: time.Unix(0, 0), Progress: &p,
		}}}
		assert.Regexp(t, `^ · (0|100)%(, [0-9hms]+ left)?$`, ProgressLine(s, time.Now()))
	}
}
