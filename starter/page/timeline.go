package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Timeline is a run's time line.
type Timeline struct {
	// From and To are the bounds. To is the present if the run is open.
	From, To time.Time
	// Spans are sorted by lane.
	Spans []Span
	// Events are sorted by time. More counts those omitted.
	Events []Event
	More   int
}

// Span is a period in a run. Spans with the same lane share a line.
type Span struct {
	Lane, Text string
	From, To   time.Time
	Tone       Tone
}

// Event is something that happened: a restart, a lost host, a stop, the end.
type Event struct {
	At   time.Time
	Text string
	Tone Tone
}

// The heights of a time line's parts, in pixels.
const (
	marksHeight = 20
	laneHeight  = 34
	axisHeight  = 18
)

// SVG draws the time line. A label suffices because the page also lists its events.
func (t *Timeline) SVG(f *Frame) template.HTML {
	lanes := t.lanes()
	whole := t.To.Sub(t.From)
	if whole <= 0 || len(lanes) == 0 {
		return ""
	}
	var b strings.Builder
	height := marksHeight + laneHeight*len(lanes) + axisHeight
	fmt.Fprintf(&b, `<svg class="timeline" height="%d" role="img" aria-label="Time line of %s, with %s">`, height, units.Span(whole), escaped(strings.Join(lanes, ", ")))
	at := func(when time.Time) float64 { return 100 * min(1, max(0, float64(when.Sub(t.From))/float64(whole))) }
	bottom := height - axisHeight
	for i := range 5 {
		x, anchor := 25*i, "middle"
		switch i {
		case 0:
			anchor = "start"
		case 4:
			anchor = "end"
		}
		when := t.From.Add(whole * time.Duration(i) / 4).In(f.zone())
		layout := "15:04:05"
		if whole > 24*time.Hour {
			layout = "2 Jan 15:04"
		}
		class := ""
		if i%2 == 1 {
			class = ` class="narrow"`
		}
		fmt.Fprintf(&b, `<line class="axis" x1="%d%%" x2="%d%%" y1="%d" y2="%d"/><text%s x="%d%%" y="%d" text-anchor="%s">%s</text>`,
			x, x, marksHeight, bottom, class, x, height-4, anchor, when.Format(layout))
	}
	for i, lane := range lanes {
		y := marksHeight + i*laneHeight
		fmt.Fprintf(&b, `<text x="5" y="%d">%s</text>`, y+11, escaped(lane))
		for _, s := range t.Spans {
			if s.Lane == lane {
				from, to := at(s.From), at(s.To)
				fmt.Fprintf(&b, `<rect class="bar-span %s" x="%.3f%%" width="%.3f%%" y="%d" height="12" rx="2"><title>%s, %s</title></rect>`,
					s.Tone.class(), from, max(.3, to-from), y+16, escaped(s.Text), units.Span(s.To.Sub(s.From)))
			}
		}
	}
	for _, e := range t.Events {
		fmt.Fprintf(&b, `<svg class="%s" x="%.3f%%" overflow="visible"><line class="mark" y1="14" y2="%d"/><use href="#%s" x="-6" y="1" width="12" height="12"/><title>%s</title></svg>`,
			e.Tone.class(), at(e.At), bottom, e.Tone.symbol(), escaped(e.Text))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// lanes returns the lanes in the order of their first spans.
func (t *Timeline) lanes() (lanes []string) {
	known := map[string]bool{}
	for _, s := range t.Spans {
		if !known[s.Lane] {
			known[s.Lane] = true
			lanes = append(lanes, s.Lane)
		}
	}
	return lanes
}

func escaped(text string) string { return template.HTMLEscapeString(spec.OneLine(text)) }
