package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

var askedAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func TestStoppingLine(t *testing.T) {
	s := spec.Stopping{Stop: true, By: "worker-1", Reason: "enough", Asked: askedAt, Deadline: askedAt.Add(2 * time.Minute)}
	assert.Equal(t, "worker-1 asked all tasks to stop: enough (12s ago; 1m48s left)", StoppingLine(s, askedAt.Add(12*time.Second)))
	assert.Equal(t, "worker-1 asked all tasks to stop: enough (3m0s ago; their time is over)", StoppingLine(s, askedAt.Add(3*time.Minute)))
	assert.Equal(t, "worker-1 asked all tasks to stop: enough (0s ago; 2m1s left)", StoppingLine(s, askedAt.Add(-time.Second)), "by a clock that is behind")
	s.Deadline = time.Time{}
	assert.Equal(t, "worker-1 asked all tasks to stop: enough (5s ago; the run was ending already)", StoppingLine(s, askedAt.Add(5*time.Second)))
}

// CO-10, CO-07: the report of a successful run names the task that stopped it, the reason, and
// the tasks that it did not wait for.
func TestReportOfAStopTogether(t *testing.T) {
	stopping := &spec.Stopping{Stop: true, By: "worker-1", Error: &spec.TogetherError{Kind: "StopIteration"}, Clean: true}
	_, stderr, code := reported(t, false, &spec.RunResult{Verdict: spec.VerdictSucceeded, Stopping: stopping, Stragglers: []string{"worker-0", "ps-0"}}, nil)
	assert.Equal(t, `clusterrun: run iris-1 succeeded
  worker-1 asked all tasks to stop: StopIteration (a clean stop)
  Coordinator stopped with tasks still running: worker-0 ps-0
`, stderr)
	assert.Zero(t, code)
}
