// Package shorten makes texts fit into little room. It never cuts a character in two.
//
// Workflow code calls it: its results depend on its arguments only.
package shorten

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Head returns the beginning of a text, at most so many bytes. It keeps nothing else of
// the text in memory.
func Head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:max(0, most)])
}

// Text returns the beginning of a text that has more bytes than most, with an ellipsis for the
// rest. If there is no room for that it returns nothing.
func Text(text string, most int) string {
	switch {
	case len(text) <= most:
		return text
	case most < len(ellipsis):
		return ""
	}
	return Head(text, most-len(ellipsis)) + ellipsis
}

// Middle returns both ends of a text that has more bytes than most, with gap between
// them.
func Middle(text string, most int, gap string) string {
	if len(text) <= most {
		return text
	}
	keep := max(0, most-len(gap))
	from := len(text) - (keep - keep/2)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return Head(text, keep/2) + gap + text[from:]
}

// Traceback is [Middle] for a text of many lines. Of a traceback the first frames are of
// use, and the last.
func Traceback(text string, most int) string {
	return Middle(text, most, fmt.Sprintf("\n… %d bytes are left out …\n", len(text)-most))
}

// List joins the first names of a list, and counts the others: "a, b and 3 more".
func List(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
