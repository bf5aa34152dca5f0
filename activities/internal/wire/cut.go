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
