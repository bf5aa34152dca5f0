package tasklog

import (
	"strconv"
	"strings"
)

// style has the attributes and the link that a text has switched on but not off again. The zero
// value is the initial state of a terminal.
type style struct {
	attributes [slots]string // parameters of SGR, such as "38;5;12"
	link       string        // the sequence that opened it
}

// Attributes that exclude each other share a slot.
const (
	slotFont = iota
	slotBold
	slotFaint
	slotItalic
	slotUnderline
	slotBlink
	slotInverse
	slotHidden
	slotStrike
	slotForeground
	slotBackground
	slotFrame
	slotOverline
	slotUnderlineColor
	slotScript
	slots
)

const (
	resetAttributes = "\x1b[0m"
	closeLink       = "\x1b]8;;\x1b\\"
)

func (s *style) isPlain() bool { return *s == style{} }

// appendOpen appends the sequences that switch the style on.
func (s *style) appendOpen(dst []byte) []byte {
	separator := "\x1b["
	for _, a := range s.attributes {
		if a != "" {
			dst = append(append(dst, separator...), a...)
			separator = ";"
		}
	}
	if separator == ";" {
		dst = append(dst, 'm')
	}
	return append(dst, s.link...)
}

// appendClose appends the sequences that switch the style off.
func (s *style) appendClose(dst []byte) []byte {
	if s.attributes != [slots]string{} {
		dst = append(dst, resetAttributes...)
	}
	if s.link != "" {
		dst = append(dst, closeLink...)
	}
	return dst
}

// apply applies the sequence SGR with these parameters (ECMA-48 8.3.117, and xterm's
// additions), and reports whether it knows all of them.
func (s *style) apply(parameters string) (known bool) {
	for more := true; more; {
		var p string
		p, parameters, more = strings.Cut(parameters, ";")
		code, subs, hasSubs := strings.Cut(p, ":")
		n := 0
		if code != "" {
			var err error
			if n, err = strconv.Atoi(code); err != nil {
				return false
			}
		}
		switch n {
		case 38, 48, 58:
			if !hasSubs {
				if p, parameters, more = longColor(p, parameters, more); p == "" {
					return false
				}
			}
			s.attributes[colorSlot(n)] = p
		case 4:
			s.attributes[slotUnderline] = p
			if subs == "0" {
				s.attributes[slotUnderline] = ""
			}
		default:
			if hasSubs || !s.set(n, p) {
				return false
			}
		}
	}
	return true
}

func colorSlot(n int) int {
	switch n {
	case 38:
		return slotForeground
	case 48:
		return slotBackground
	}
	return slotUnderlineColor
}

// longColor consumes the parameters of a colour of the form 38;5;n or 38;2;r;g;b. If they are
// missing, color is empty.
func longColor(p, rest string, more bool) (color, after string, afterMore bool) {
	kind, _, _ := strings.Cut(rest, ";")
	take := map[string]int{"5": 2, "2": 4}[kind]
	if take == 0 || strings.Count(rest, ";") < take-1 {
		return "", rest, more
	}
	for range take {
		var next string
		next, rest, more = strings.Cut(rest, ";")
		p += ";" + next
	}
	return p, rest, more
}

// set applies a parameter of one number, and reports whether it knows it.
func (s *style) set(n int, p string) (known bool) {
	a := &s.attributes
	switch {
	case n == 0:
		*a = [slots]string{}
	case n == 1:
		a[slotBold] = p
	case n == 2:
		a[slotFaint] = p
	case n == 3 || n == 20:
		a[slotItalic] = p
	case n == 5 || n == 6:
		a[slotBlink] = p
	case n == 7:
		a[slotInverse] = p
	case n == 8:
		a[slotHidden] = p
	case n == 9:
		a[slotStrike] = p
	case n == 10:
		a[slotFont] = ""
	case n >= 11 && n <= 19:
		a[slotFont] = p
	case n == 21:
		a[slotUnderline] = p
	case n == 22:
		a[slotBold], a[slotFaint] = "", ""
	case n == 23:
		a[slotItalic] = ""
	case n == 24:
		a[slotUnderline] = ""
	case n == 25:
		a[slotBlink] = ""
	case n == 27:
		a[slotInverse] = ""
	case n == 28:
		a[slotHidden] = ""
	case n == 29:
		a[slotStrike] = ""
	case n >= 30 && n <= 37 || n >= 90 && n <= 97:
		a[slotForeground] = p
	case n == 39:
		a[slotForeground] = ""
	case n >= 40 && n <= 47 || n >= 100 && n <= 107:
		a[slotBackground] = p
	case n == 49:
		a[slotBackground] = ""
	case n == 51 || n == 52:
		a[slotFrame] = p
	case n == 53:
		a[slotOverline] = p
	case n == 54:
		a[slotFrame] = ""
	case n == 55:
		a[slotOverline] = ""
	case n == 59:
		a[slotUnderlineColor] = ""
	case n == 73 || n == 74:
		a[slotScript] = p
	case n == 75:
		a[slotScript] = ""
	default:
		return false
	}
	return true
}
