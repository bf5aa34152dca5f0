package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// MaxCharted is the maximum number of ranks with their own line.
const MaxCharted = 4

// maxPoints is the maximum number of points per line. A chart is a few hundred pixels wide.
const maxPoints = 240

// Chart is a series drawing with its caption.
type Chart struct {
	Name string
	Keys []Key
	SVG  template.HTML
}

// Key explains one line of a chart.
type Key struct {
	// Class is the line's style: c-median, c-worst, or c-chosen0 to c-chosen3.
	Class, Text, Value string
}

// curve is one line of a chart.
type curve struct {
	class, text string
	values      []float64
}

// Charts returns charts for the series that have values.
func (p *RunPage) Charts() (charts []Chart) {
	for i := range p.Series {
		if s := &p.Series[i]; len(s.Times) > 1 && len(s.Tasks) > 0 {
			charts = append(charts, s.chart(p.Charted, &p.Frame))
		}
	}
	return charts
}

// ChartURL returns the page's address with the rank's own line toggled in the charts. It is
// empty if the page does not have such lines.
func (p *RunPage) ChartURL(rank int) string {
	if p.IsFile() || len(p.Series) == 0 || len(p.Tasks.All) < 2 {
		return ""
	}
	to := *p
	to.Charted = slices.DeleteFunc(slices.Clone(p.Charted), func(r int) bool { return r == rank })
	if len(to.Charted) == len(p.Charted) {
		to.Charted = append(to.Charted, rank)
		to.Charted = to.Charted[max(0, len(to.Charted)-MaxCharted):]
	}
	return to.query(p.Tasks.Filter) + "#usage"
}

// IsCharted reports whether a rank has its own line in the charts.
func (p *RunPage) IsCharted(rank int) bool { return slices.Contains(p.Charted, rank) }

// ChartedText returns the charted ranks, formatted for addresses.
func (p *RunPage) ChartedText() string {
	texts := list.Of(p.Charted, itoa)
	return strings.Join(texts, ",")
}

// chart draws the tasks' median, the worst task and the charted ones, within the range spanned
// by all tasks.
func (s *Series) chart(charted []int, f *Frame) Chart {
	least, median, most := s.median()
	curves := []curve{{"c-median", "median", median}}
	if len(s.Tasks) == 1 {
		curves[0].text = s.Tasks[0].Name
	}
	if worst := s.worst(); worst >= 0 {
		curves = append(curves, curve{"c-worst", "worst: rank " + strconv.Itoa(s.Tasks[worst].Rank), s.Tasks[worst].Values})
	}
	for _, t := range s.Tasks {
		if i := slices.Index(charted, t.Rank); i >= 0 && len(s.Tasks) > 1 {
			curves = append(curves, curve{"c-chosen" + itoa(i%MaxCharted), "rank " + itoa(t.Rank), t.Values})
		}
	}
	top, bottom := 0.0, 0.0
	for i := range most {
		if !math.IsNaN(most[i]) {
			top, bottom = max(top, most[i]), min(bottom, least[i])
		}
	}
	if bottom < 0 { // only metrics are
		bottom = -roundUp(-bottom, s.Unit)
	}
	if top > 0 || bottom == 0 {
		top = roundUp(top, s.Unit)
	}
	c := Chart{Name: s.Name}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" role="img" aria-label="%s from %s to %s">`, escaped(s.Name), s.time(0, f), s.time(len(s.Times)-1, f))
	for _, y := range []int{0, 50, 100} {
		fmt.Fprintf(&b, `<line class="axis" x1="0" x2="100%%" y1="%d" y2="%d"/>`, 4+y, 4+y)
	}
	b.WriteString(`<svg y="4" width="100%" height="100" viewBox="0 0 1000 100" preserveAspectRatio="none">`)
	if len(s.Tasks) > 1 {
		b.WriteString(`<polygon points="`)
		upper, lower := s.points(most, bottom, top), s.points(least, bottom, top)
		slices.Reverse(lower)
		b.WriteString(strings.Join(append(slices.Concat(upper...), slices.Concat(reversed(lower)...)...), " "))
		b.WriteString(`"/>`)
	}
	for _, line := range curves {
		for _, part := range s.points(line.values, bottom, top) {
			fmt.Fprintf(&b, `<polyline class="%s" points="%s"/>`, line.class, strings.Join(part, " "))
		}
		c.Keys = append(c.Keys, Key{line.class, line.text, s.Unit.format(last(line.values))})
	}
	b.WriteString(`</svg>`)
	fmt.Fprintf(&b, `<text x="2" y="15">%s</text>`, s.Unit.format(top))
	if bottom < 0 {
		fmt.Fprintf(&b, `<text x="2" y="101">%s</text>`, s.Unit.format(bottom))
	}
	fmt.Fprintf(&b, `<text x="0" y="118">%s</text><text x="100%%" y="118" text-anchor="end">%s</text></svg>`, s.time(0, f), s.time(len(s.Times)-1, f))
	c.SVG = template.HTML(b.String())
	return c
}

// reversed reverses each part.
func reversed(parts [][]string) [][]string {
	for _, part := range parts {
		slices.Reverse(part)
	}
	return parts
}

// points returns a line's points, in parts separated by gaps of unknown values. If there are too
// many, it keeps the largest of neighbouring values.
func (s *Series) points(values []float64, bottom, top float64) (parts [][]string) {
	from, to := s.Times[0], s.Times[len(s.Times)-1]
	whole := max(1, to.Sub(from).Seconds())
	step := (len(s.Times) + maxPoints - 1) / maxPoints
	var part []string
	end := func() {
		if len(part) > 0 {
			parts, part = append(parts, part), nil
		}
	}
	for i := 0; i < len(s.Times); i += step {
		v := math.NaN()
		for k := i; k < min(i+step, len(values)); k++ {
			if math.IsNaN(v) || values[k] > v {
				v = values[k]
			}
		}
		if math.IsNaN(v) {
			end()
			continue
		}
		x, y := 1000*s.Times[i].Sub(from).Seconds()/whole, 100-100*(v-bottom)/(top-bottom)
		part = append(part, strconv.FormatFloat(x, 'f', 1, 64)+","+strconv.FormatFloat(y, 'f', 1, 64))
	}
	end()
	return parts
}

func (s *Series) time(i int, f *Frame) string {
	layout := "15:04:05"
	if s.Times[len(s.Times)-1].Sub(s.Times[0]) > 24*time.Hour {
		layout = "2 Jan 15:04"
	}
	return s.Times[i].In(f.zone()).Format(layout)
}

// roundUp returns the next round number or, for bytes, the next power of two.
func roundUp(v float64, u Unit) float64 {
	if v <= 0 || math.IsInf(v, 0) {
		return 1
	}
	if u == Bytes {
		return math.Exp2(math.Ceil(math.Log2(v)))
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 1.2, 1.5, 2, 3, 4, 5, 6, 8} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}
