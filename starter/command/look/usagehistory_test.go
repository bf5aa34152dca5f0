package look

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/series"
)

func TestUsageHistoryIsShown(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	tasks := []record.UsageHistory{{Name: "worker-0", Host: "a"}, {Name: "worker-1"}}
	for i := range 100 {
		p := series.Point{From: began.Add(time.Duration(i) * time.Second), Seconds: 1, CPUs: float64(i) / 50, MaxCPUs: float64(i) / 50, RSSBytes: 1 << 20}
		if i < 50 {
			tasks[0].Points = append(tasks[0].Points, p)
		}
		p.Steps, p.StepSeconds, p.MaxStepSeconds = 2, 0.25, 1.5
		tasks[1].Points = append(tasks[1].Points, p)
	}
	var out strings.Builder
	require.NoError(t, printUsageHistory(&out, tasks, false))
	lines := strings.Split(out.String(), "\n")
	assert.Contains(t, lines[0], "; a bar is 5s, and the tallest one the most of any task")
	assert.Equal(t, []string{"TASK", "HOST", "CPUS", "(MEAN,", "MAX)", "MEMORY", "(MAX)", "STEP", "(MEAN,", "MAX)"}, strings.Fields(lines[1]), "no GPUs")
	assert.Contains(t, lines[2], "▁▂▂▂▃▃▃▄▄▄            0.49, 0.98")
	assert.Contains(t, lines[3], "▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▇▇▇██  0.99, 1.98  ████████████████████  1.0 MiB")
	assert.Contains(t, lines[3], "250ms, 1.5s")
}
