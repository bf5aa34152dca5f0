// Package shorten truncates text, and breaks it into lines. It never splits a character.
//
// The package is pure, so workflow code can call it.
package shorten

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Head returns a prefix of text that is no longer than most bytes. It does not keep the rest of
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

// Text truncates text to most bytes, including an ellipsis. If the ellipsis does not fit, it
// returns "".
func Text(text string, most int) string {
	switch {
	case len(text) <= most:
		return text
	case most < len(ellipsis):
		return ""
	}
	return Head(text, most-len(ellipsis)) + ellipsis
}

// Middle truncates text to most bytes by replacing its middle with gap.
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

// Traceback is [Middle] for text of many lines. In a traceback, the first and last frames are the
// most useful.
func Traceback(text string, most int) string {
	return Middle(text, most, fmt.Sprintf("\n… %d bytes omitted …\n", len(text)-most))
}

// List joins a list's first names and counts the rest: "a, b and 3 more".
func List(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
