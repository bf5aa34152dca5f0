package page

import (
	"html/template"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

var functions = template.FuncMap{
	"add":     func(a, b int) int { return a + b },
	"bytes":   bytesText,
	"cell":    spec.OneLine,
	"columns": columnsOf,
	"count":   units.Count,
	"csp":     func() string { return CSP(File) },
	"css":     func() template.CSS { return template.CSS(asset("page.css")) },
	"cssURL":  func() string { return assetURL("page.css") },
	"dash":    dash,
	"icon":    icon,
	"js":      func() template.JS { return template.JS(asset("page.js")) },
	"jsURL":   func() string { return assetURL("page.js") },
	"ms":      func(d time.Duration) int64 { return d.Milliseconds() },
	"number":  number,
	"output":  outputHTML,
	"runURL":  RunURL,
	"percent": func(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + "%" },
	"span":    units.Span,
	"tone":    ToneOf,
	"visible": spec.EscapeControl,
}

func bytesText(n int64) string {
	if n == 0 {
		return "–"
	}
	return units.Bytes(n)
}

// dash returns the text, or a dash if it is empty.
func dash(text string) string {
	if text == "" {
		return "–"
	}
	return spec.OneLine(text)
}

// number formats a number in at most four digits, and returns "" for 0.
func number(f float64) string {
	switch {
	case f == 0:
		return "–"
	case f >= 100 || f == float64(int64(f)):
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// icon returns a tone's symbol, which conveys the same as the color.
func icon(t Tone) template.HTML {
	return template.HTML(`<svg class="icon ` + t.class() + `" aria-hidden="true"><use href="#` + t.symbol() + `"/></svg>`)
}

func itoa(n int) string { return strconv.Itoa(n) }
