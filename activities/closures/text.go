package closures

import (
	"strings"
	"unicode/utf8"
)

// cutEnd cuts a text behind some bytes, and cutStart before the last ones.
func cutEnd(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most])
}

func cutStart(s string, most int) string {
	if len(s) <= most {
		return s
	}
	from := len(s) - most
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return strings.Clone(s[from:])
}
