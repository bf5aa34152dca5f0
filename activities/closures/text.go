package closures

import (
	"strings"
	"unicode/utf8"
)

// cutEnd cuts a text behind some bytes.
func cutEnd(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most])
}
