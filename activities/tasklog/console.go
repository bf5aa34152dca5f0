package tasklog

import (
	"bytes"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// ConsoleOptions says how a [Console] shows lines.
type ConsoleOptions struct {
	// Prefix gives the start of the lines of a process. It is asked once per
	// process. None: lines have no prefix.
	Prefix func(rank, attempt int) string
	// Timestamps puts the time of day in front of each line, before the prefix:
	// local time, when the line is shown, which is a little later than when it
	// was written.
	Timestamps bool
	// Terminal says which of the two outputs is a terminal that understands
	// escape sequences. Default: [IsTerminal], for files.
	Terminal func(io.Writer) bool
	// Shared says that others write to the same terminal meanwhile. Then nothing
	// is shown below the lines, since it would be torn.
	Shared bool
}

// Console writes the lines of many tasks, each with its prefix, to stdout and
// stderr. Lines are written whole: one of them never has another within it.
// On a terminal, what a line does to its colours ends with it, and sequences
// that move the cursor are left out; elsewhere all bytes stay as they are. Of a
// line with carriage returns its last state counts; while it is unfinished it is
// a progress bar, which is shown below all lines or, without a terminal, as a
// line now and then. All methods may be called at the same time.
type Console struct {
	prefix     func(rank, attempt int) string
	timestamps bool
	now        func() time.Time

	mu       sync.Mutex
	out, err *output
	prefixes map[int]prefixOf // by rank, of the attempt that last had a line
	lines    map[streamKey]*line
	stamped  []byte // a prefix with its time
	text     []byte // a piece of a line, made safe
	closed   bool
	failure  error
}

type prefixOf struct {
	attempt int
	text    []byte
}

// NewConsole writes to stdout and stderr, which may be the same.
func NewConsole(stdout, stderr io.Writer, o ConsoleOptions) *Console {
	c := &Console{
		prefix: o.Prefix, timestamps: o.Timestamps, now: time.Now,
		prefixes: map[int]prefixOf{}, lines: map[streamKey]*line{},
	}
	if c.prefix == nil {
		c.prefix = func(int, int) string { return "" }
	}
	if o.Terminal == nil {
		o.Terminal = func(w io.Writer) bool {
			f, ok := w.(*os.File)
			return ok && IsTerminal(f)
		}
	}
	c.err = &output{w: stderr, place: newPlace(stderr, o)}
	c.err.place.below = c.err
	if samePlace(stdout, stderr) {
		c.out = &output{w: stdout, place: c.err.place}
	} else {
		c.out = &output{w: stdout, place: newPlace(stdout, o)}
		c.out.place.below = c.out
	}
	return c
}

func (c *Console) outputs() []*output { return []*output{c.out, c.err} }

func (c *Console) outputOf(stderr bool) *output {
	if stderr {
		return c.err
	}
	return c.out
}

// Deliver writes a chunk; it is a sink for a [Follower].
func (c *Console) Deliver(chunk Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.outputOf(chunk.Stderr)
	p := o.place
	if chunk.Start && p.isOpen(chunk.Stream) {
		c.finishLine(o)
	}
	l := c.lineOf(o, chunk)
	if l == nil && p.isPlain(chunk.Data) {
		c.plain(o, chunk)
	} else {
		c.careful(o, l, chunk)
	}
	c.end(o)
}

// plain writes a chunk that needs no care.
func (c *Console) plain(o *output, chunk Chunk) {
	data := chunk.Data
	if o.place.isOpen(chunk.Stream) {
		var line []byte
		line, data = firstLine(data)
		c.add(o, line, nil)
	} else {
		c.finishLine(o)
	}
	prefix := c.prefixFor(chunk.Stream)
	for len(data) > 0 {
		var line []byte
		line, data = firstLine(data)
		c.add(o, prefix, line)
	}
	o.place.open, o.place.stream = !chunk.End(), chunk.Stream
}

// Println writes a line of our own to stderr.
func (c *Console) Println(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishLine(c.err)
	c.add(c.err, []byte(text), []byte("\n"))
	c.end(c.err)
}

// End is for a task whose processes have all ended: what is unfinished of its
// lines is finished.
func (c *Console) End(rank int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stderr := range []bool{false, true} {
		if l := c.lines[streamKey{rank, stderr}]; l != nil {
			c.endLine(c.outputOf(stderr), l)
		}
		c.end(c.outputOf(stderr))
	}
}

// Close finishes the last lines and removes what is below them.
func (c *Console) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.outputs() {
		for _, l := range slices.Clone(o.place.bars) {
			if l.Stderr == (o == c.err) {
				c.endLine(o, l)
			}
		}
	}
	c.setStatus("")
	for _, o := range c.outputs() {
		c.finishLine(o)
		c.end(o)
		if o.place.timer != nil {
			o.place.timer.Stop()
		}
	}
	c.closed = true
	return c.failure
}

// Err is the first error of writing. Nothing is written after it.
func (c *Console) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

func firstLine(data []byte) (line, rest []byte) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[:i+1], data[i+1:]
	}
	return data, nil
}

// prefixFor is what a line of a stream begins with.
func (c *Console) prefixFor(s Stream) []byte {
	text := c.barePrefix(s)
	if !c.timestamps {
		return text
	}
	c.stamped = append(c.now().AppendFormat(c.stamped[:0], "15:04:05.000 "), text...)
	return c.stamped
}

func (c *Console) barePrefix(s Stream) []byte {
	p, ok := c.prefixes[s.Rank]
	if !ok || p.attempt != s.Attempt {
		p = prefixOf{s.Attempt, []byte(c.prefix(s.Rank, s.Attempt))}
		c.prefixes[s.Rank] = p
	}
	return p.text
}
