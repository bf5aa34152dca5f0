package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/series"
)

const (
	// maxCharted is the maximum number of tasks in a page's usage charts.
	maxCharted = page.MaxRows
	// maxTimes is the maximum number of times in a chart.
	maxTimes = 120
	// sampled is the interval between samples of a task's usage.
	sampled = 10 * time.Second
)

// measures lists the charted quantities. value returns an interval's value, or NaN if it is
// unknown.
var measures = []struct {
	name     string
	unit     page.Unit
	lowIsBad bool
	value    func(series.Point) float64
}{
	{"CPU", page.Number, true, func(p series.Point) float64 { return p.CPUs }},
	{"Memory", page.Bytes, false, func(p series.Point) float64 { return p.RSSBytes }},
	{"GPU", page.Number, true, func(p series.Point) float64 { return p.GPUs }},
	{"GPU memory", page.Bytes, false, func(p series.Point) float64 { return p.GPUMemoryBytes }},
	{"Step time", page.Seconds, false, func(p series.Point) float64 {
		if p.Steps == 0 {
			return math.NaN()
		}
		return p.StepSeconds
	}},
}

// Usage returns tasks' usage over time for charts, on a shared grid of times. It omits tasks
// without points and quantities that are 0 everywhere. all counts the run's tasks, which may
// exceed the histories.
func Usage(histories []runrecord.UsageHistory, all int) (found []page.Series) {
	var from, to time.Time
	for _, h := range histories {
		if len(h.Points) == 0 {
			continue
		}
		total := series.Total(h.Points)
		if from.IsZero() || total.From.Before(from) {
			from = total.From
		}
		if total.To().After(to) {
			to = total.To()
		}
	}
	whole := to.Sub(from)
	if whole <= 0 {
		return nil
	}
	n := int(min(maxTimes, max(2, whole/sampled)))
	times := make([]time.Time, n)
	for i := range times {
		times[i] = from.Add(whole * time.Duration(2*i+1) / time.Duration(2*n))
	}
	grids := make([][]series.Point, len(histories))
	for i, h := range histories {
		if len(h.Points) > 0 {
			grids[i] = series.Resample(h.Points, from, to, n)
		}
	}
	for _, m := range measures {
		s := page.Series{Name: m.name, Unit: m.unit, Times: times, LowIsBad: m.lowIsBad}
		if all > len(histories) {
			s.Name += fmt.Sprintf(" of %d of %d tasks", len(histories), all)
		}
		isUsed := false
		for i, grid := range grids {
			if grid == nil {
				continue
			}
			t := page.TaskSeries{Rank: histories[i].Rank, Name: histories[i].Name, Values: make([]float64, n)}
			for k, p := range grid {
				t.Values[k] = math.NaN()
				if p.Seconds > 0 {
					t.Values[k] = m.value(p)
				}
				isUsed = isUsed || t.Values[k] > 0
			}
			s.Tasks = append(s.Tasks, t)
		}
		if isUsed {
			found = append(found, s)
		}
	}
	return found
}

// Metrics returns the metrics that tasks have reported over time, on a shared grid of times. A value
// lasts until the task's next report.
func Metrics(histories []runrecord.UsageHistory) (found []page.Series) {
	var from, to time.Time
	for _, h := range histories {
		for _, r := range h.Reports {
			if from.IsZero() || r.At.Before(from) {
				from = r.At
			}
			if r.At.After(to) {
				to = r.At
			}
		}
	}
	whole := to.Sub(from)
	if whole <= 0 {
		return nil
	}
	times := make([]time.Time, maxTimes)
	for i := range times {
		times[i] = from.Add(whole * time.Duration(i) / (maxTimes - 1))
	}
	at := map[string]int{} // indices in found, by name
	for _, h := range histories {
		values := map[string][]float64{}
		last := map[string]int{}
		for _, r := range h.Reports {
			i := int((maxTimes - 1) * float64(r.At.Sub(from)) / float64(whole))
			for name, v := range r.Metrics {
				if values[name] == nil {
					values[name], last[name] = slices.Repeat([]float64{math.NaN()}, maxTimes), i
				}
				for k := last[name] + 1; k < i; k++ {
					values[name][k] = values[name][k-1]
				}
				values[name][i], last[name] = v, i
			}
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			i, ok := at[name]
			if !ok {
				i = len(found)
				at[name], found = i, append(found, page.Series{Name: name, Unit: page.Metric, Times: times})
			}
			found[i].Tasks = append(found[i].Tasks, page.TaskSeries{Rank: h.Rank, Name: h.Name, Values: values[name]})
		}
	}
	return found
}
