package tasklog

import (
	"bytes"
)

// maxBar limits the state of a progress bar. Anything longer is text.
const maxBar = 4 << 10

// bar is an unfinished line with a carriage return. Text after the carriage return overwrites the
// text before it, as in a progress bar. The bar's state is the piece after the last carriage return
// or, while that is empty, the piece before it.
type bar struct {
	current, last []byte
	// returns is the number of carriage returns since current.
	returns int
	// changed reports whether the current state has not been shown yet.
	changed bool
}

// renew starts a new piece.
func (b *bar) renew() {
	if !isInvisible(b.current) {
		b.current, b.last = b.last, b.current
	}
	b.current, b.returns = b.current[:0], 0
}

// state returns what a terminal would show for the bar.
func (b *bar) state() []byte {
	if isInvisible(b.current) {
		return b.last
	}
	return b.current
}

// isInvisible reports whether the only effect of text on a terminal is to change attributes.
func isInvisible(text []byte) bool {
	for len(text) > 0 {
		rest, ok := bytes.CutPrefix(text, []byte("\x1b["))
		if !ok {
			return false
		}
		rest = bytes.TrimLeft(rest, "0123456789;:")
		if len(rest) == 0 || rest[0] != 'm' {
			return false
		}
		text = rest[1:]
	}
	return true
}

// isBlank reports whether text shows only space.
func isBlank(text []byte) bool {
	var f filter
	return len(bytes.TrimSpace(stripStyles(f.appendSafe(nil, text)))) == 0
}

// stripStyles removes the escape sequences that a filter lets through.
func stripStyles(text []byte) []byte {
	var plain []byte
	for {
		i := bytes.IndexByte(text, esc)
		if i < 0 {
			return append(plain, text...)
		}
		plain, text = append(plain, text[:i]...), text[i:]
		end := bytes.IndexByte(text, 'm')
		if bytes.HasPrefix(text, []byte("\x1b]")) {
			end = bytes.Index(text, []byte("\x1b\\")) + 1
		}
		text = text[end+1:]
	}
}
