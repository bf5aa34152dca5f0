// Package wrap breaks texts into lines.
package wrap

import (
	"strings"
	"unicode/utf8"
)

// Lines breaks a text at blanks into lines of at most width characters. A longer word gets a line
// of its own.
func Lines(text string, width int) []string { return Columns(text, width, utf8.RuneCountInString) }

// Columns is like Lines for words that are not as wide as they have characters.
func Columns(text string, width int, columns func(word string) int) (lines []string) {
	used := 0 // columns of the last line
	for word := range strings.FieldsSeq(text) {
		w := columns(word)
		if used == 0 || used+1+w > width {
			lines, used = append(lines, word), w
			continue
		}
		lines[len(lines)-1] += " " + word
		used += 1 + w
	}
	return lines
}
