package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkRestart is from the failure of a process to the program of the next
// one, by what both write into a pipe. Goal: 12 ms.
func BenchmarkRestart(b *testing.B) {
	f := newFixture(b)
	pipe := newFIFO(b, f.dir)
	var took []time.Duration
	for range 15 {
		run := f.start(&spec.RunSpec{AutoRestart: true, Stop: spec.Stop{Signal: "SIGKILL"},
			Env: spec.EnvOf(map[string]string{"FIFO": pipe.path}),
			Tasks: []spec.TaskGroup{{Type: "worker", Count: count(1), Command: []string{"/bin/sh", "-c",
				`printf x > "$FIFO"; [ "$CLUSTERRUN_RESTART_COUNT" -gt 0 ] || exit 1; exec sleep 1000`}}}})
		failed := pipe.await(b, 1)
		took = append(took, pipe.await(b, 1).Sub(failed))
		f.stop(run)
	}
	report(b, took, 12*time.Millisecond)
}

// BenchmarkChiefExit is from the chief's end to the end of the last of eight
// processes, with no grace. Goal: 15 ms.
func BenchmarkChiefExit(b *testing.B) {
	f := newFixture(b)
	var took []time.Duration
	for range 11 {
		up := newFIFO(b, f.dir)
		gone := newFIFO(b, f.dir)
		run := f.start(&spec.RunSpec{ChiefGrace: spec.DurationOf(0),
			Env: spec.EnvOf(map[string]string{"UP": up.path, "GONE": gone.path}),
			Tasks: []spec.TaskGroup{
				{Type: "chief", Command: []string{"/bin/sh", "-c", `exec 3> "$GONE"; printf x > "$UP"; read x < "$UP.go"; printf c >&3`}},
				{Type: "worker", Count: count(7), Command: []string{"/bin/sh", "-c", `exec 3> "$GONE"; printf x > "$UP"; exec sleep 1000`}},
			}})
		require.NoError(b, mkfifo(up.path+".go"))
		up.await(b, 8)
		// Reading only, so that the end of the last writer is the end of the file.
		reader, err := os.OpenFile(gone.path, os.O_RDONLY, 0)
		require.NoError(b, err)
		require.NoError(b, gone.Close())
		require.NoError(b, os.WriteFile(up.path+".go", []byte("go\n"), 0))
		_, err = io.ReadFull(reader, make([]byte, 1))
		require.NoError(b, err)
		chief := time.Now()
		_, err = io.ReadAll(reader)
		require.NoError(b, err)
		took = append(took, time.Since(chief))
		require.NoError(b, run.Get(context.Background(), nil))
		_ = reader.Close()
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
