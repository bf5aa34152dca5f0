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
			s.attributes[colorSlots[n]] = p
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

// colorSlots has the slots of the parameters that begin a colour of several numbers.
var colorSlots = map[int]int{38: slotForeground, 48: slotBackground, 58: slotUnderlineColor}

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

// The slots that a parameter of one number switches on, and those that it switches off.
var (
	switchesOn = map[int]int{
		1: slotBold, 2: slotFaint, 3: slotItalic, 5: slotBlink, 6: slotBlink, 7: slotInverse, 8: slotHidden, 9: slotStrike,
		20: slotItalic, 21: slotUnderline, 51: slotFrame, 52: slotFrame, 53: slotOverline, 73: slotScript, 74: slotScript,
	}
	switchesOff = map[int][]int{
		10: {slotFont}, 22: {slotBold, slotFaint}, 23: {slotItalic}, 24: {slotUnderline}, 25: {slotBlink}, 27: {slotInverse},
		28: {slotHidden}, 29: {slotStrike}, 39: {slotForeground}, 49: {slotBackground}, 54: {slotFrame}, 55: {slotOverline},
		59: {slotUnderlineColor}, 75: {slotScript},
	}
)

// set applies a parameter of one number, and reports whether it knows it.
func (s *style) set(n int, p string) (known bool) {
	on, known := switchesOn[n]
	switch {
	case n == 0:
		s.attributes = [slots]string{}
		return true
	case known:
	case n >= 11 && n <= 19:
		on = slotFont
	case n >= 30 && n <= 37 || n >= 90 && n <= 97:
		on = slotForeground
	case n >= 40 && n <= 47 || n >= 100 && n <= 107:
		on = slotBackground
	default:
		for _, slot := range switchesOff[n] {
			s.attributes[slot] = ""
		}
		return len(switchesOff[n]) > 0
	}
	s.attributes[on] = p
	return true
}
