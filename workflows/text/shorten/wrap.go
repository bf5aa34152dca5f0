package shorten

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks text at blanks into lines of at most width characters. A longer word gets its own
// line.
func Wrap(text string, width int) (lines []string) {
	used := 0 // columns of the last line
	for word := range strings.FieldsSeq(text) {
		w := utf8.RuneCountInString(word)
		if used == 0 || used+1+w > width {
			lines, used = append(lines, word), w
			continue
		}
		lines[len(lines)-1] += " " + word
		used += 1 + w
	}
	return lines
}
