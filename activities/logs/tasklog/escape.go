package tasklog

import (
	"bytes"
	"regexp"
)

// escapes matches what may not go to a shared terminal, and the sequences that set attributes, the
// only ones that may. An unfinished sequence ends with its text.
var escapes = regexp.MustCompile(`\x1b(?:\[[ -?]*[@-~]?|[\]PX^_][^\x07\x18\x1a\x1b]*(?:\x07|\x18|\x1a|\x1b\\)?|[ -/]*[0-~]?)|[\x00-\x07\x0b-\x1f\x{80}-\x{9f}]`)

// attributes matches the sequences that set attributes.
var attributes = regexp.MustCompile(`^\x1b\[[0-9;:]*m$`)

const resetAttributes = "\x1b[0m"

// passes contains the bytes that may go to a terminal unchanged. 0xc2 may start a control character.
var passes = func() (t [256]bool) {
	for b := range t {
		t[b] = b >= ' ' && b != 0xc2
	}
	t['\b'], t['\t'], t['\n'] = true, true, true
	return t
}()

// isSafe reports whether text can go to a terminal unchanged.
func isSafe(text []byte) bool {
	for _, b := range text {
		if !passes[b] {
			return false
		}
	}
	return true
}

// appendSafe appends what a line may show on a shared terminal: text and attributes, which are
// reset at its end.
func appendSafe(dst, line []byte) []byte {
	line, newline := bytes.CutSuffix(line, []byte("\n"))
	from := len(dst)
	// What is left of two broken characters may otherwise be a control character.
	dst = append(dst, escapes.ReplaceAllFunc(bytes.ToValidUTF8(line, []byte("\ufffd")), func(found []byte) []byte {
		if attributes.Match(found) {
			return found
		}
		return nil
	})...)
	if bytes.IndexByte(dst[from:], 0x1b) >= 0 {
		dst = append(dst, resetAttributes...)
	}
	if newline {
		dst = append(dst, '\n')
	}
	return dst
}

// barState returns the last state of a progress bar: a line in which text after a carriage return
// overwrites the text before. It returns nil for other lines, such as those that end with \r\n, and
// an empty slice for a bar that shows nothing.
func barState(line []byte) []byte {
	text, newline := bytes.CutSuffix(line, []byte("\n"))
	text = bytes.TrimRight(text, "\r")
	if newline && bytes.IndexByte(text, '\r') < 0 {
		return nil
	}
	states := bytes.Split(text, []byte("\r"))
	for i := len(states) - 1; i >= 0; i-- {
		if len(bytes.TrimSpace(escapes.ReplaceAll(states[i], nil))) > 0 {
			return append(bytes.Clone(states[i]), '\n')
		}
	}
	return []byte{}
}
