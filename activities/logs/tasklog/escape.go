package tasklog

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	esc  = 0x1b
	bell = 0x07
	// latin is the first byte of the characters U+0080 to U+00BF, the first half of which are
	// control characters.
	latin = 0xc2
	// maxSequence limits how much of an escape sequence is kept. The longest sequences that pass
	// are those of links, and terminals accept about 2 KiB.
	maxSequence = 4 << 10
	// maxPen limits the attributes that are restored on a stream's next line.
	maxPen = 256

	resetAttributes = "\x1b[0m"
	closeLink       = "\x1b]8;;\x1b\\"
)

// filter makes a stream's text safe for a shared terminal. Sequences that set attributes and links
// pass; sequences that move the cursor, erase text or change the terminal are omitted.
type filter struct {
	// pen contains the attribute sequences since the text last switched off any attribute, and link
	// the sequence that opened a link.
	pen, link string
	// rest is the start of an unfinished escape sequence.
	rest []byte
	// erased reports whether the text has requested that its line be erased.
	erased bool
}

// passes contains the bytes that may go to a terminal unchanged.
var passes = func() (t [256]bool) {
	for b := range t {
		t[b] = b >= ' ' && b != latin
	}
	for _, b := range "\a\b\t\n" {
		t[b] = true
	}
	return t
}()

// safe returns the length of text's prefix that does not need a filter.
func safe(text []byte) int {
	for i, b := range text {
		if !passes[b] {
			return i
		}
	}
	return len(text)
}

// appendSafe appends the safe part of text, a piece of a line.
func (f *filter) appendSafe(dst, text []byte) []byte {
	if len(f.rest) > 0 {
		text, f.rest = append(f.rest, text...), nil
	}
	for len(text) > 0 {
		n := safe(text)
		dst, text = append(dst, text[:n]...), text[n:]
		switch {
		case len(text) == 0:
		case text[0] != esc && text[0] != latin:
			text = text[1:]
		case len(text) > 1 && text[0] == latin && text[1] >= 0xa0 && text[1] < 0xc0:
			dst, text = append(dst, text[:2]...), text[2:]
		default:
			kind, body, length := sequence(text)
			if length == 0 {
				f.rest = bytes.Clone(text)
				if len(text) > maxSequence {
					f.rest = append(f.rest[:2:2], '?') // a kind that never passes
				}
				return dst
			}
			dst, text = f.apply(dst, kind, body), text[length:]
		}
	}
	return dst
}

// sequence reads the escape sequence at the start of text. kind is the byte after the escape, or 0
// if the sequence is broken, and body is the rest. The length is 0 if the sequence is incomplete.
func sequence(text []byte) (kind byte, body []byte, length int) {
	if len(text) < 2 {
		return 0, nil, 0
	}
	kind = text[1]
	if text[0] == latin {
		if kind -= 0x40; kind < '@' || kind > '_' {
			return 0, nil, 1 // half a character
		}
		if strings.IndexByte("[]PX^_", kind) < 0 {
			return 0, nil, 2
		}
	}
	end := 2
	switch {
	case strings.IndexByte("]PX^_", kind) >= 0:
		i := bytes.IndexAny(text[end:], "\a\x1b\x18\x1a")
		if end += i; i < 0 || text[end] == esc && end+1 == len(text) {
			return 0, nil, 0
		}
		switch {
		case text[end] == bell:
			return kind, text[2:end], end + 1
		case text[end] != esc:
			return 0, nil, end + 1
		case text[end+1] == '\\':
			return kind, text[2:end], end + 2
		}
		return 0, nil, end // broken by another sequence
	case kind == '[':
		for end < len(text) && text[end] >= ' ' && text[end] <= '?' {
			end++
		}
	case kind >= ' ' && kind <= '/':
		for end < len(text) && text[end] >= ' ' && text[end] <= '/' {
			end++
		}
	case kind > ' ' && kind <= '~':
		return kind, nil, end
	default:
		return 0, nil, 1
	}
	switch {
	case end == len(text):
		return 0, nil, 0
	case text[end] > ' ' && text[end] <= '~':
		return kind, text[2 : end+1], end + 1
	}
	return 0, nil, end
}

// apply appends a sequence if it may pass.
func (f *filter) apply(dst []byte, kind byte, body []byte) []byte {
	switch {
	case kind == '[' && body[len(body)-1] == 'K':
		f.erased = true
	case kind == '[' && len(body) < 128 && len(bytes.Trim(body, "0123456789;:")) == 1 && body[len(body)-1] == 'm':
		f.paint(string(body))
		return append(append(dst, "\x1b["...), body...)
	case kind == ']' && bytes.HasPrefix(body, []byte("8;")) && len(body) < maxSequence && safe(body) == len(body):
		_, address, ok := bytes.Cut(body[2:], []byte(";"))
		if f.link = ""; len(address) > 0 {
			f.link = "\x1b]" + string(body) + "\x1b\\"
			return append(dst, f.link...)
		}
		if ok {
			return append(dst, closeLink...)
		}
	}
	return dst
}

// paint saves attributes for the next line. A sequence that switches any of them off drops all of
// them.
func (f *filter) paint(attributes string) {
	first := strings.TrimRight(attributes, "m")
	if i := strings.IndexAny(first, ";:"); i >= 0 {
		first = first[:i]
	}
	n, _ := strconv.Atoi(first)
	only := len(first)+1 == len(attributes)
	switch {
	case only && n == 0, n >= 22 && n <= 29, n == 39, n == 49, n == 54, n == 55, n == 59, n == 75:
		f.pen = ""
	case n == 0 || len(f.pen)+len(attributes) > maxPen:
		f.pen = "\x1b[" + attributes
	default:
		f.pen += "\x1b[" + attributes
	}
}

// closed appends the sequences that switch off text's attributes and links.
func closed(text []byte) []byte {
	if bytes.IndexByte(text, esc) < 0 {
		return text
	}
	link := bytes.Contains(text, []byte("\x1b]8;"))
	if text = append(text, resetAttributes...); link {
		text = append(text, closeLink...)
	}
	return text
}
