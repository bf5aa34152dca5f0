package tasklog

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// hasLive reports whether bars or a status line are shown below the lines.
func (p *place) hasLive() bool {
	if !p.live {
		return false
	}
	if p.status != "" {
		return true
	}
	return slices.ContainsFunc(p.bars, func(l *line) bool { return !isBlank(l.bar.state()) })
}

// appendErase removes the text below the lines, and leaves the cursor there.
func (p *place) appendErase(dst []byte) []byte {
	switch p.drawn {
	case 0:
		return dst
	case 1:
		dst = append(dst, "\r\x1b[K"...)
	default:
		dst = append(strconv.AppendInt(append(dst, "\r\x1b["...), int64(p.drawn-1), 10), "A\x1b[J"...)
	}
	p.drawn = 0
	return dst
}

// appendLive draws the bars and the status line. It turns wrapping off: a line that is too long
// would become two, of which only one would be erased. So the width of the terminal does not
// matter, even if it changes.
func (c *Console) appendLive(dst []byte, p *place) []byte {
	dst = append(dst, "\x1b[?7l"...)
	row := func() {
		if p.drawn > 0 {
			dst = append(dst, '\n')
		}
		p.drawn++
	}
	limit, more := p.maxRows(), 0
	for _, l := range p.bars {
		state := l.bar.state()
		switch {
		case isBlank(state):
		case limit == 0:
			more++
		default:
			limit--
			row()
			dst = closed(append(dst, p.prefixes.of(l.Stream, c.prefix)...), state)
		}
	}
	if more > 0 {
		row()
		dst = fmt.Appendf(dst, "and %s", plural.Of(more, "more bar", "more bars"))
	}
	if p.status != "" {
		row()
		dst = append(dst, p.status...)
	}
	return append(dst, "\x1b[?7h"...)
}

// maxRows returns how many bars there is room for: everything below the lines must fit on the
// terminal, or it could not be erased.
func (p *place) maxRows() int {
	const others = 3 // the line above, the number of further bars, the status line
	if h := p.height(); h > 0 {
		return max(0, min(maxRows, h-others))
	}
	return maxRows
}
