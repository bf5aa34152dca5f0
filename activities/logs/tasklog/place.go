package tasklog

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// place is the destination of one or both outputs: the text that is shown there, and the text that
// belongs below the lines.
type place struct {
	// mu guards all fields, and the outputs that go here.
	mu       sync.Mutex
	terminal bool
	// live reports whether there may be anything below the lines.
	live bool
	// below is the output through which the live area is written.
	below *output

	// open reports whether the last line, which belongs to stream, is unfinished.
	open   bool
	stream Stream

	bars   []*line // lines with a bar, by rank
	status string
	// drawn is the number of rows in the live area.
	drawn int
	// timer is armed while a change of the bars has not been drawn.
	timer  *time.Timer
	redraw time.Duration
	// height returns the height of the terminal, in rows, or 0 if unknown.
	height func() int

	prefixes prefixes // of the attempts that last had a line
	lines    map[streamKey]*line
	stamped  []byte // a prefix with its time
	text     []byte // a piece of a line, made safe
	closed   bool
}

const (
	// redrawEvery is the interval between redraws of bars on a terminal.
	redrawEvery = 100 * time.Millisecond
	// repeatEvery is the interval at which bars are shown as lines without a terminal.
	repeatEvery = 10 * time.Second
	// maxRows is the maximal number of bars.
	maxRows = 8
)

func newPlace(w io.Writer, o ConsoleOptions) *place {
	p := &place{
		terminal: o.Terminal(w), redraw: repeatEvery, height: func() int { return 0 },
		prefixes: prefixes{}, lines: map[streamKey]*line{},
	}
	if p.live = p.terminal && !o.Shared; p.live {
		p.redraw = redrawEvery
	}
	if f := FileOf(w); f != nil {
		p.height = func() int { return heightOf(f) }
	}
	return p
}

func (p *place) isOpen(s Stream) bool { return p.open && p.stream == s }

// isPlain reports whether a text can be written unchanged.
func (p *place) isPlain(text []byte) bool {
	if p.terminal {
		return isSafe(text)
	}
	return bytes.IndexByte(text, '\r') < 0
}

// newBar turns a line into a bar.
func (c *Console) newBar(o *output, l *line) {
	l.bar, l.erased = &bar{}, false
	i, _ := slices.BinarySearchFunc(o.place.bars, l, byRank)
	o.place.bars = slices.Insert(o.place.bars, i, l)
}

func (c *Console) dropBar(o *output, l *line) {
	p := o.place
	p.bars = slices.DeleteFunc(p.bars, func(other *line) bool { return other == l })
	l.bar = nil
	o.buf = p.appendErase(o.buf)
}

func byRank(a, b *line) int {
	if a.Rank == b.Rank && a.Stderr != b.Stderr {
		if b.Stderr {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Rank, b.Rank)
}

// barChanged schedules a redraw of the bars.
func (c *Console) barChanged(o *output) {
	if p := o.place; p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(p.redraw, func() { c.showBars(p) })
	}
}

// showBars shows the current state of the bars of a place.
func (c *Console) showBars(p *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if p.closed {
		return
	}
	if p.live {
		p.below.buf = p.appendErase(p.below.buf)
		c.end(p.below)
		return
	}
	for _, l := range p.bars {
		o := c.outputOf(l.Stderr)
		if l.bar.changed && !isBlank(l.bar.state()) {
			c.showBar(o, l, []byte("\n"))
			c.end(o)
		}
	}
}

// heightOf returns the height of a terminal in rows, or 0 if unknown.
func heightOf(f *os.File) int {
	rows, _, _ := pty.Size(f)
	return rows
}
