package model

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/series"
)

// samples returns a sample every 10 s.
func samples(from time.Time, cpus ...float64) (points []series.Point) {
	for i, v := range cpus {
		points = append(points, series.Point{From: from.Add(time.Duration(i) * sampled), Seconds: 10, CPUs: v, MaxCPUs: v, RSSBytes: 1 << 20})
	}
	return points
}

// All tasks share the charts' times. Unknown usage is missing, and a quantity that no task uses
// is not charted.
func TestUsage(t *testing.T) {
	steps := samples(noon.Add(20*time.Second), 4, 2)
	steps[1].Steps, steps[1].StepSeconds = 5, 2
	found := Usage([]runrecord.UsageHistory{
		{Name: "worker-0", Rank: 0, Points: samples(noon, 1, 1, 3, 3)},
		{Name: "worker-1", Rank: 1},
		{Name: "worker-2", Rank: 2, Points: steps},
	}, 3)
	require.Len(t, found, 3)
	cpu, memory, step := found[0], found[1], found[2]
	assert.Equal(t, []string{"CPU", "Memory", "Step time"}, []string{cpu.Name, memory.Name, step.Name})
	var times []time.Duration
	for _, at := range cpu.Times {
		times = append(times, at.Sub(noon))
	}
	assert.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second, 35 * time.Second}, times)
	require.Len(t, cpu.Tasks, 2, "nothing is known of worker-1")
	assert.Equal(t, page.TaskSeries{Rank: 0, Name: "worker-0", Values: []float64{1, 1, 3, 3}}, cpu.Tasks[0])
	late := cpu.Tasks[1]
	assert.Equal(t, 2, late.Rank)
	assert.True(t, math.IsNaN(late.Values[1]))
	assert.Equal(t, []float64{4, 2}, late.Values[2:])
	assert.Equal(t, float64(1<<20), memory.Tasks[0].Values[3])
	assert.True(t, math.IsNaN(step.Tasks[1].Values[2]), "it made no step")
	assert.InDelta(t, 2, step.Tasks[1].Values[3], 1e-9)

	p := &page.RunPage{Frame: page.Frame{Zone: time.UTC}, Series: found}
	charts := p.Charts()
	require.Len(t, charts, 3)
	assert.Equal(t, []page.Key{{Class: "c-median", Text: "median", Value: "3"}, {Class: "c-worst", Text: "worst: rank 2", Value: "2"}}, charts[0].Keys)
}

// Charts of long runs are limited in length, and state how many tasks they show.
func TestUsageIsBounded(t *testing.T) {
	assert.Empty(t, Usage(nil, 0))
	assert.Empty(t, Usage([]runrecord.UsageHistory{{Name: "worker-0"}}, 1))
	found := Usage([]runrecord.UsageHistory{{Name: "worker-0", Points: samples(noon, make([]float64, 5000)...)}}, 300)
	require.Len(t, found, 1)
	assert.Equal(t, "Memory of 1 of 300 tasks", found[0].Name)
	assert.Len(t, found[0].Times, maxTimes)
	short := Usage([]runrecord.UsageHistory{{Name: "worker-0", Points: samples(noon, 1)}}, 1)
	assert.Len(t, short[0].Times, 2, "a line has two ends")
}

// A metric of all tasks is one series, and lasts until the next report.
func TestMetrics(t *testing.T) {
	report := func(seconds int, metrics map[string]float64) series.Report {
		return series.Report{At: noon.Add(time.Duration(seconds) * time.Second), Metrics: metrics}
	}
	assert.Empty(t, Metrics([]runrecord.UsageHistory{{}, {Reports: []series.Report{report(1, map[string]float64{"loss": 1})}}}), "at one time")
	found := Metrics([]runrecord.UsageHistory{
		{Name: "worker-0", Reports: []series.Report{report(0, map[string]float64{"loss": 2, "acc": 0}), report(60, map[string]float64{"loss": -1})}},
		{Name: "worker-1", Rank: 1, Reports: []series.Report{report(119, map[string]float64{"loss": 3})}},
	})
	require.Len(t, found, 2)
	assert.Equal(t, []string{"acc", "loss"}, []string{found[0].Name, found[1].Name})
	require.Len(t, found[1].Tasks, 2)
	loss := found[1].Tasks[0].Values
	assert.Equal(t, []float64{2, 2, -1}, []float64{loss[0], loss[59], loss[60]})
	assert.True(t, math.IsNaN(loss[61]), "it is unknown whether the process still lived")
	assert.Equal(t, 3.0, found[1].Tasks[1].Values[119])

	charts := (&page.RunPage{Frame: page.Frame{Zone: time.UTC}, Series: found[1:]}).Charts()
	require.Len(t, charts, 1)
	assert.Equal(t, []page.Key{{Class: "c-median", Text: "median", Value: "3"}}, charts[0].Keys, "none is the worst")
	assert.Contains(t, string(charts[0].SVG), ">-1</text>")
}
