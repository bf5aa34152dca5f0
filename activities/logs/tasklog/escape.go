package tasklog

import (
	"bytes"
	"strings"
)

const (
	esc  = 0x1b
	bell = 0x07
	// latin is the first byte of the characters U+0080 to U+00BF, the first half of which are
	// control characters.
	latin = 0xc2
	// maxSequence bounds what is kept of an escape sequence. Links have the longest sequences
	// that pass, and terminals accept about 2 KiB.
	maxSequence = 4 << 10
)

// filter makes the text of a stream safe for a terminal that others write to: sequences that
// set attributes and links pass, and those that move the cursor, erase or change the terminal
// are left out. It tracks the style of the text.
type filter struct {
	style style
	// sequence is the beginning of an unfinished escape sequence.
	sequence []byte
	// tooLong reports whether part of the sequence was dropped.
	tooLong bool
	// erased reports whether the text has requested that its line be erased.
	erased bool
}

// passes are the bytes that may go to a terminal unchanged.
var passes = func() (t [256]bool) {
	for b := range t {
		t[b] = b >= ' ' && b != latin
	}
	for _, b := range "\a\b\t\n" {
		t[b] = true
	}
	return t
}()

// isSafe reports whether a text needs no filter.
func isSafe(text []byte) bool {
	for _, b := range text {
		if !passes[b] {
			return false
		}
	}
	return true
}

// appendSafe appends the safe part of a piece of a line.
func (f *filter) appendSafe(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if len(f.sequence) > 0 {
			var used bool
			if dst, used = f.next(dst, text[i]); used {
				i++
			}
			continue
		}
		start := i
		for i < len(text) && passes[text[i]] {
			i++
		}
		dst = append(dst, text[start:i]...)
		if i < len(text) {
			if b := text[i]; b == esc || b == latin {
				f.sequence = append(f.sequence, b)
			}
			i++
		}
	}
	return dst
}

// abort drops an unfinished sequence at the end of a line.
func (f *filter) abort() { f.sequence, f.tooLong = f.sequence[:0], false }

// next consumes one more byte of a sequence. It returns false if the byte ends the sequence
// without being part of it.
func (f *filter) next(dst []byte, b byte) (_ []byte, used bool) {
	if len(f.sequence) == 1 && f.sequence[0] == latin {
		return f.nextLatin(dst, b)
	}
	switch b {
	case 0x18, 0x1a: // CAN and SUB cancel
		f.abort()
		return dst, true
	case esc:
		if f.isString() && f.sequence[len(f.sequence)-1] != esc {
			f.keep(b) // probably the first half of the terminator
			return dst, true
		}
		f.abort()
		f.sequence = append(f.sequence, b)
		return dst, true
	}
	if len(f.sequence) == 1 {
		return dst, f.second(b)
	}
	if f.isString() {
		return f.nextOfString(dst, b)
	}
	isControl := f.sequence[1] == '['
	switch {
	case b < ' ':
		return dst, true
	case b <= '/', isControl && b <= '?':
		f.keep(b)
		return dst, true
	case b > '~':
		f.abort()
		return dst, false
	}
	if isControl && !f.tooLong {
		dst = f.control(dst, b)
	}
	f.abort()
	return dst, true
}

// nextLatin distinguishes the control characters U+0080 to U+009F from other characters.
func (f *filter) nextLatin(dst []byte, b byte) (_ []byte, used bool) {
	f.abort()
	switch {
	case b >= 0xa0 && b < 0xc0:
		return append(dst, latin, b), true
	case b < 0x80 || b >= 0xc0: // not a character, and the next byte could make it a control
		return dst, false
	case strings.IndexByte("[]PX^_", b-0x40) >= 0:
		f.sequence = append(f.sequence, esc, b-0x40)
	}
	return dst, true
}

// second consumes the byte after the escape.
func (f *filter) second(b byte) (used bool) {
	if strings.IndexByte("[]PX^_", b) >= 0 || b >= ' ' && b <= '/' {
		f.sequence = append(f.sequence, b)
		return true
	}
	f.abort()
	return b > ' ' && b <= '~'
}

func (f *filter) isString() bool {
	return len(f.sequence) > 1 && strings.IndexByte("]PX^_", f.sequence[1]) >= 0
}

func (f *filter) nextOfString(dst []byte, b byte) (_ []byte, used bool) {
	last := len(f.sequence) - 1
	ended := f.sequence[last] == esc
	switch {
	case ended && b == '\\':
		f.sequence = f.sequence[:last]
	case ended: // by another sequence
		f.abort()
		f.sequence = append(f.sequence, esc)
		return dst, false
	case b == bell:
	default:
		if b >= ' ' {
			f.keep(b)
		}
		return dst, true
	}
	if text, ok := bytes.CutPrefix(f.sequence, []byte("\x1b]8;")); ok && !f.tooLong {
		dst = f.setLink(dst, text)
	}
	f.abort()
	return dst, true
}

// keep appends to the sequence. If the sequence is too long to pass, only its kind is kept.
func (f *filter) keep(b byte) {
	if len(f.sequence) >= maxSequence {
		f.sequence, f.tooLong = f.sequence[:2], true
	}
	f.sequence = append(f.sequence, b)
}

// control applies the control sequence with this last byte to the style.
func (f *filter) control(dst []byte, last byte) []byte {
	parameters := f.sequence[2:]
	switch {
	case last == 'K':
		f.erased = true
	case last == 'm' && len(parameters) < 128 && len(bytes.Trim(parameters, "0123456789;:")) == 0:
		// An unknown attribute could not be ended with its line.
		if s := f.style; s.apply(string(parameters)) {
			f.style = s
			dst = append(append(dst, f.sequence...), last)
		}
	}
	return dst
}

// setLink opens or closes a link; the text is "parameters;address".
func (f *filter) setLink(dst, text []byte) []byte {
	_, address, ok := bytes.Cut(text, []byte(";"))
	switch {
	case !ok:
		return dst
	case len(address) == 0:
		f.style.link = ""
		return append(dst, closeLink...)
	}
	f.style.link = string(f.sequence) + "\x1b\\"
	return append(dst, f.style.link...)
}
