package bench

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkRestart measures the time from the failure of a process to the program of the next
// one, by the lines that both write to a pipe. Goal: 12 ms.
func BenchmarkRestart(b *testing.B) {
	p, ours := newPlace(b)
	var took []time.Duration
	for range 15 {
		d, err := p.Restart(b.Context(), ours)
		require.NoError(b, err)
		took = append(took, d)
	}
	report(b, took, 12*time.Millisecond)
}

// BenchmarkChiefExit is from the chief's end to the end of the last of eight
// processes, with no grace. Goal: 15 ms.
func BenchmarkChiefExit(b *testing.B) {
	p, _ := newPlace(b)
	var took []time.Duration
	for range 11 {
		d, err := p.EndAfterChief(b.Context(), measure.WithChief(harness.Clusterrun(b), p.StateDir()), 8)
		require.NoError(b, err)
		took = append(took, d)
	}
	report(b, took, 15*time.Millisecond)
}

// BenchmarkEvents counts the history events of a run: at most 6 per task beyond
// a constant under 40, and none per restart.
func BenchmarkEvents(b *testing.B) {
	f := newFixture(b)
	events := func(n int, script string, restart bool) int {
		run := f.start(&spec.RunSpec{AutoRestart: restart, Tasks: []spec.TaskGroup{
			{Type: "worker", Count: count(n), Command: []string{"/bin/sh", "-c", script}}}})
		require.NoError(b, run.Get(context.Background(), nil))
		it := f.client.GetWorkflowHistory(context.Background(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		total := 0
		for it.HasNext() {
			_, err := it.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(b, err)
			total++
		}
		return total
	}
	one, many := events(1, "true", false), events(200, "true", false)
	restarted := events(1, `[ "$CLUSTERRUN_RESTART_COUNT" -ge 5 ]`, true)
	b.ReportMetric(float64(one-6), "constant")
	b.ReportMetric(float64(many-one)/199, "events/task")
	b.ReportMetric(float64(restarted-one)/5, "events/restart")
	b.ReportMetric(0, "ns/op")
}
