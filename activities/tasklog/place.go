package tasklog

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/pty"
)

// place is where one or both outputs go: what stands there, and what is to be
// below it.
type place struct {
	// mu guards all of it, and the outputs that go here.
	mu       sync.Mutex
	terminal bool
	// live reports whether there may be something below the lines.
	live bool
	// below is the output through which that is written.
	below *output

	// open reports whether the last line, which is stream's, is unfinished.
	open   bool
	stream Stream

	bars   []*line // those with a bar, by rank
	status string
	// drawn is the number of rows that stand below the lines.
	drawn int
	// timer is for what has changed of the bars. nil: nothing has.
	timer  *time.Timer
	redraw time.Duration
	// height is that of the terminal, in rows; 0: unknown.
	height func() int

	prefixes map[int]prefixOf // by rank, of the attempt that last had a line
	lines    map[streamKey]*line
	stamped  []byte // a prefix with its time
	text     []byte // a piece of a line, made safe
	closed   bool
}

const (
	// redrawEvery is how often bars are drawn anew on a terminal.
	redrawEvery = 100 * time.Millisecond
	// repeatEvery is how often they are shown as lines elsewhere.
	repeatEvery = 10 * time.Second
	// maxRows is the number of bars that are drawn.
	maxRows = 8
)

func newPlace(w io.Writer, o ConsoleOptions) *place {
	p := &place{
		terminal: o.Terminal(w), redraw: repeatEvery, height: func() int { return 0 },
		prefixes: map[int]prefixOf{}, lines: map[streamKey]*line{},
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

// isPlain reports whether a text needs no care here.
func (p *place) isPlain(text []byte) bool {
	if p.terminal {
		return isSafe(text)
	}
	return bytes.IndexByte(text, '\r') < 0
}

// newBar makes a bar of a line.
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

// barChanged has the bars shown, but not too often.
func (c *Console) barChanged(o *output) {
	if p := o.place; p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(p.redraw, func() { c.showBars(p) })
	}
}

// showBars shows how the bars of a place are now.
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

// heightOf returns the height of a terminal in rows; 0: it is unknown.
func heightOf(f *os.File) int {
	rows, _, _ := pty.Size(f)
	return rows
}
