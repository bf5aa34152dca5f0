package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

const (
	plotWidth, plotHeight = 720, 420
	plotLeft, plotRight   = 70, 170
	plotTop, plotBottom   = 40, 50
)

var colours = []string{"#d62728", "#7f7f7f", "#1f77b4", "#17becf", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b"}

// plot draws how long launches take by the number of processes, both on logarithmic scales.
func (c *comparison) plot() string {
	least, most, sizes := math.Inf(1), 0.0, []row{}
	for _, r := range c.rows {
		if r.processes == 0 {
			continue
		}
		sizes = append(sizes, r)
		for _, cell := range r.cells {
			if cell.text == "" {
				least, most = min(least, cell.value), max(most, cell.value)
			}
		}
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	last := math.Log2(float64(sizes[len(sizes)-1].processes))
	x := func(n int) float64 {
		return plotLeft + math.Log2(float64(n))/last*(plotWidth-plotLeft-plotRight)
	}
	y := func(v float64) float64 {
		return plotTop + (high-math.Log10(v))/(high-low)*(plotHeight-plotTop-plotBottom)
	}
	var t strings.Builder
	fmt.Fprintf(&t, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
<text x="%d" y="22" font-size="14">Milliseconds from the command to all processes executing, by their number</text>
`, plotWidth, plotHeight, plotLeft)
	for p := low; p <= high; p++ {
		v := math.Pow(10, p)
		fmt.Fprintf(&t, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			plotLeft, plotWidth-plotRight, y(v), y(v), plotLeft-8, y(v)+4, v)
	}
	for _, r := range sizes {
		fmt.Fprintf(&t, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(r.processes), plotHeight-plotBottom+20, r.processes)
	}
	for i, l := range c.columns {
		var points []string
		at, end := 0.0, 0.0
		for _, r := range sizes {
			if cell := r.cells[i]; cell.text == "" {
				at, end = x(r.processes), y(cell.value)
				points = append(points, fmt.Sprintf("%.1f,%.1f", at, end))
			}
		}
		if len(points) == 0 {
			continue
		}
		colour := colours[i%len(colours)]
		fmt.Fprintf(&t, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n",
			strings.Join(points, " "), colour, at+8, end+4, colour, html.EscapeString(l.name))
	}
	t.WriteString("</svg>\n")
	return t.String()
}
