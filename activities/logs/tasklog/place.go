package tasklog

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// place is the destination of one or both outputs. It holds the lines shown and the status line.
type place struct {
	// mu guards all fields, and the outputs to this place.
	mu       sync.Mutex
	terminal bool
	status   string
	// drawn reports whether the status line is shown.
	drawn bool

	// open reports whether the last line, which belongs to stream, is unfinished.
	open   bool
	stream Stream

	// timer is armed while there is a change to the bars that has not been shown.
	timer *time.Timer
	every time.Duration

	prefixes prefixes // of the attempts that last wrote a line
	lines    map[streamKey]*line
	stamped  []byte // a prefix with its time
	text     []byte // a piece of a line, made safe
	closed   bool
}

// repeatEvery is the interval of showing unfinished bars.
const repeatEvery = 10 * time.Second

func newPlace(w io.Writer, o ConsoleOptions) *place {
	return &place{terminal: o.Terminal(w), every: repeatEvery, prefixes: prefixes{}, lines: map[streamKey]*line{}}
}

func (p *place) isOpen(s Stream) bool { return p.open && p.stream == s }

// isPlain reports whether text can be written unchanged.
func (p *place) isPlain(text []byte) bool {
	if p.terminal {
		return safe(text) == len(text)
	}
	return bytes.IndexByte(text, '\r') < 0
}

// bars returns the lines that are bars, by rank.
func (p *place) bars() []*line {
	list := slices.SortedFunc(maps.Values(p.lines), func(a, b *line) int {
		if a.Rank == b.Rank && a.Stderr != b.Stderr && b.Stderr {
			return -1
		}
		return cmp.Compare(a.Rank, b.Rank)
	})
	return slices.DeleteFunc(list, func(l *line) bool { return l.bar == nil })
}

// barChanged schedules a redraw of the bars.
func (c *Console) barChanged(p *place) {
	if p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(p.every, func() { c.showBars(p) })
	}
}

// showBars shows a place's changed bars.
func (c *Console) showBars(p *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if p.closed {
		return
	}
	for _, l := range p.bars() {
		o := c.outputOf(l.Stderr)
		c.showChanged(o, l)
		c.end(o)
	}
}
