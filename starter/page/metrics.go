package page

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter/runrecord"
)

// maxTimes is the maximum number of times in a chart.
const maxTimes = 120

// Metric is a number that tasks report with their progress, such as a loss, over time.
type Metric struct {
	Name     string
	From, To time.Time
	// Tasks holds each task's values, at equal intervals. An unknown value is NaN.
	Tasks [][]float64
}

// NewMetrics returns the metrics that tasks have reported. A value lasts until the task's next
// report.
func NewMetrics(histories []runrecord.MetricHistory) (found []Metric) {
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
				at[name], found = i, append(found, Metric{Name: name, From: from, To: to})
			}
			found[i].Tasks = append(found[i].Tasks, values[name])
		}
	}
	return found
}

// Median returns the last known median of the tasks' values.
func (m *Metric) Median() string {
	_, median, _ := m.spread()
	for _, v := range slices.Backward(median) {
		if !math.IsNaN(v) {
			return metricText(v)
		}
	}
	return "–"
}

func metricText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// SVG draws the tasks' median, within the range that all tasks span.
func (m *Metric) SVG(f *Frame) template.HTML {
	least, median, most := m.spread()
	bottom, top := 0.0, 0.0
	for i := range most {
		if !math.IsNaN(most[i]) {
			bottom, top = min(bottom, least[i]), max(top, most[i])
		}
	}
	if top == bottom {
		top = 1
	}
	points := func(values []float64) (points []string) {
		for i, v := range values {
			if !math.IsNaN(v) {
				points = append(points, fmt.Sprintf("%.1f,%.1f", 1000*float64(i)/float64(len(values)-1), 100-100*(v-bottom)/(top-bottom)))
			}
		}
		return points
	}
	layout := "15:04:05"
	if m.To.Sub(m.From) > 24*time.Hour {
		layout = "2 Jan 15:04"
	}
	from, to := m.From.In(f.zone()).Format(layout), m.To.In(f.zone()).Format(layout)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" role="img" aria-label="%s from %s to %s">`, escaped(m.Name), from, to)
	for _, y := range []int{4, 54, 104} {
		fmt.Fprintf(&b, `<line class="axis" x1="0" x2="100%%" y1="%d" y2="%d"/>`, y, y)
	}
	b.WriteString(`<svg y="4" width="100%" height="100" viewBox="0 0 1000 100" preserveAspectRatio="none">`)
	if len(m.Tasks) > 1 {
		lower := points(least)
		slices.Reverse(lower)
		fmt.Fprintf(&b, `<polygon points="%s"/>`, strings.Join(append(points(most), lower...), " "))
	}
	fmt.Fprintf(&b, `<polyline points="%s"/></svg><text x="2" y="15">%s</text>`, strings.Join(points(median), " "), metricText(top))
	if bottom < 0 {
		fmt.Fprintf(&b, `<text x="2" y="101">%s</text>`, metricText(bottom))
	}
	fmt.Fprintf(&b, `<text x="0" y="118">%s</text><text x="100%%" y="118" text-anchor="end">%s</text></svg>`, from, to)
	return template.HTML(b.String())
}

// spread returns the tasks' minimum, median and maximum at each time.
func (m *Metric) spread() (least, median, most []float64) {
	for i := range maxTimes {
		var known []float64
		for _, values := range m.Tasks {
			if v := values[i]; !math.IsNaN(v) {
				known = append(known, v)
			}
		}
		if len(known) == 0 {
			known = []float64{math.NaN()}
		}
		slices.Sort(known)
		least, median, most = append(least, known[0]), append(median, known[len(known)/2]), append(most, known[len(known)-1])
	}
	return least, median, most
}
