package runrecord

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

// differences returns the differences in one part of the comparison, as "WHAT: A → B".
func differences(c *Comparison, in string) (lines []string) {
	for _, d := range c.Differences {
		if d.In == in {
			lines = append(lines, d.What+": "+orNone(d.A)+" → "+orNone(d.B))
		}
	}
	return lines
}

func TestDifferentOrigins(t *testing.T) {
	a, _ := sample(t, "aaaaaa-1", "info")
	b, _ := sample(t, "bbbbbb-2", "info")
	a.Source = &sourcecode.Source{Dir: "/p", Commit: "0123456789abcdef", Branch: "main", Files: []sourcecode.File{{Name: "same.py", State: "changed", Digest: "3"}, {Name: "train.py", State: "changed", Digest: "1"}}}
	b.Source = &sourcecode.Source{Dir: "/q", Commit: "0123456789abcdef", Branch: "main", Files: []sourcecode.File{{Name: "same.py", State: "changed", Digest: "3"}, {Name: "train.py", State: "changed", Digest: "2"}, {Name: "new.py", State: "untracked"}}}

	c := Compare(a, b)
	assert.Equal(t, []string{"new.py: \x00 → untracked", "train.py: changed, 1 → changed, 2"}, differences(c, "source"))

	b.Source.Commit, b.Source.Note = "fedcba9876543210", "git took longer"
	c = Compare(a, b)
	assert.Equal(t, []string{
		"commit: 0123456789 (main) → fedcba9876 (main)", "new.py: \x00 → untracked", "train.py: changed, 1 → changed, 2",
	}, differences(c, "source"))
	assert.Contains(t, c.Unknown, "the source code of bbbbbb-2: git took longer")
	b.Source = nil
	c = Compare(a, b)
	assert.Empty(t, differences(c, "source"))
	assert.Len(t, c.Unknown, 1)
}

func TestMetricsOfTasks(t *testing.T) {
	a, _ := sample(t, "aaaaaa-1", "info")
	task := &a.Status.Tasks[1]
	task.Progress = &spec.Progress{Metrics: map[string]float64{"loss": 1}}
	report := func(seconds int64) taskmetrics.Report {
		return taskmetrics.Report{At: time.Unix(1_800_000_000+seconds, 0).UTC(), Metrics: map[string]float64{"loss": float64(seconds)}}
	}
	require.NoError(t, tasklog.WriteMetrics(task.LogDir, []taskmetrics.Report{report(1)}))
	run, n, rank, ok := tasklog.SplitProcessDir(task.LogDir)
	require.True(t, ok)
	again := tasklog.ProcessDir(run, n+1, rank) // after a restart
	require.NoError(t, os.MkdirAll(again, 0o700))
	require.NoError(t, tasklog.WriteMetrics(again, []taskmetrics.Report{report(2)}))

	r := starter.Get(nil, a.Status.RunID, "")
	histories := must.Get(Metrics(t.Context(), r.Files(a.Status), a.Status.Tasks))(t)
	assert.Equal(t, []MetricHistory{{Name: "worker-1", Reports: []taskmetrics.Report{report(1), report(2)}}}, histories)
	another := *a.Status
	another.Open = true
	another.RunID = "another"
	histories = must.Get(Metrics(t.Context(), r.Files(&another), a.Status.Tasks))(t)
	assert.Empty(t, histories[0].Reports, "a path that is not named after the run is not opened")
}
