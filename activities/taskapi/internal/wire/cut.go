package wire

import "strings"

const mark = "..."

// Head is the start of a text, of so many bytes at most.
func Head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(mark)], "") + mark
}

// Tail is the end of a text, of so many bytes at most.
func Tail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return mark + strings.ToValidUTF8(s[len(s)-most+len(mark):], "")
}
