package tasklog

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// ConsoleOptions configures how a [Console] shows lines.
type ConsoleOptions struct {
	// Prefix returns the start of a process's lines. Each output calls it once per process. If nil,
	// lines are not prefixed.
	Prefix func(rank, attempt int) string
	// Timestamps reports whether the local time of day is shown before each line's prefix. This is
	// the time of display, which is slightly after the line was written.
	Timestamps bool
	// Terminal reports whether an output is a terminal that understands escape sequences. The
	// default is [IsTerminal], for files and for values with a method File.
	Terminal func(io.Writer) bool
}

// Console writes the lines of many tasks, each with its prefix, to stdout and stderr. Lines are
// written whole, never interleaved. On a terminal, a line's colours end with the line, and
// sequences that move the cursor are omitted; otherwise, all bytes are kept. If a line contains
// carriage returns, only its last state is shown. While such a line is unfinished, it counts as a
// progress bar, and is shown as a line from time to time. All methods may be called concurrently.
//
// The two outputs are independent unless they go to the same place. After a write error, nothing
// more is written to the output. An output that is not read blocks only its own writers.
type Console struct {
	prefix     func(rank, attempt int) string
	timestamps bool
	now        func() time.Time
	out, err   *output
}

// prefixes contains the starts of processes' lines, by the rank of their task.
type prefixes map[int]prefixOf

type prefixOf struct {
	attempt int
	text    []byte
}

// of returns the start of a stream's lines, which is created once per process.
func (p prefixes) of(s Stream, prefix func(rank, attempt int) string) []byte {
	known, ok := p[s.Rank]
	if !ok || known.attempt != s.Attempt {
		known = prefixOf{s.Attempt, []byte(prefix(s.Rank, s.Attempt))}
		p[s.Rank] = known
	}
	return known.text
}

// NewConsole returns a console for stdout and stderr, which may be the same.
func NewConsole(stdout, stderr io.Writer, o ConsoleOptions) *Console {
	c := &Console{
		prefix: o.Prefix, timestamps: o.Timestamps, now: time.Now,
	}
	if c.prefix == nil {
		c.prefix = func(int, int) string { return "" }
	}
	if o.Terminal == nil {
		o.Terminal = func(w io.Writer) bool {
			f := FileOf(w)
			return f != nil && IsTerminal(f)
		}
	}
	c.err = &output{w: stderr, place: newPlace(stderr, o)}
	c.out = &output{w: stdout, place: c.err.place}
	if !samePlace(stdout, stderr) {
		c.out.place = newPlace(stdout, o)
	}
	return c
}

func (c *Console) outputOf(stderr bool) *output {
	if stderr {
		return c.err
	}
	return c.out
}

// Deliver writes a chunk; it is a sink for a [Follower].
func (c *Console) Deliver(chunk Chunk) {
	o := c.outputOf(chunk.Stderr)
	p := o.place
	p.mu.Lock()
	defer p.mu.Unlock()
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

// plain writes a chunk without carriage returns and escape sequences.
func (c *Console) plain(o *output, chunk Chunk) {
	data := chunk.Data
	if o.place.isOpen(chunk.Stream) {
		var line []byte
		line, data = firstLine(data)
		c.add(o, line, nil)
	} else {
		c.finishLine(o)
	}
	prefix := c.prefixFor(o.place, chunk.Stream)
	for len(data) > 0 {
		var line []byte
		line, data = firstLine(data)
		c.add(o, prefix, line)
	}
	o.place.open, o.place.stream = !chunk.End(), chunk.Stream
}

// alikeRank stands for the ranks of several tasks that wrote the same line.
const alikeRank = -1

// Alike writes, with a common prefix, a line that several tasks wrote.
func (c *Console) Alike(prefix string, line Chunk) {
	o := c.outputOf(line.Stderr)
	o.place.mu.Lock()
	defer o.place.mu.Unlock()
	line.Rank, line.Attempt = alikeRank, 0
	o.place.prefixes[alikeRank] = prefixOf{0, []byte(prefix)}
	if o.place.isPlain(line.Data) {
		c.plain(o, line)
	} else {
		c.careful(o, nil, line)
		delete(o.place.lines, streamKey{alikeRank, line.Stderr})
	}
	c.end(o)
}

// Println writes a line of our own to stderr.
func (c *Console) Println(text string) {
	c.err.place.mu.Lock()
	defer c.err.place.mu.Unlock()
	c.finishLine(c.err)
	c.add(c.err, []byte(text), []byte("\n"))
	c.end(c.err)
}

// End finishes a task's unfinished lines. It is called when all of the task's processes have
// exited.
func (c *Console) End(rank int) {
	for _, o := range []*output{c.out, c.err} {
		c.endOf(o, streamKey{rank, o == c.err})
	}
}

func (c *Console) endOf(o *output, key streamKey) {
	o.place.mu.Lock()
	defer o.place.mu.Unlock()
	if l := o.place.lines[key]; l != nil {
		c.endLine(o, l)
	}
	c.end(o)
}

// Close finishes the last lines and removes the status line below them. It returns each output's
// first write error.
func (c *Console) Close() error {
	c.SetStatus("")
	c.closeOutput(c.err)
	c.closeOutput(c.out)
	return c.Err()
}

func (c *Console) closeOutput(o *output) {
	p := o.place
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.bars() {
		if l.Stderr == (o == c.err) {
			c.endLine(o, l)
		}
	}
	c.finishLine(o)
	c.end(o)
	if p.timer != nil {
		p.timer.Stop()
	}
	p.closed = true
}

// Err returns each output's first write error. After an error, nothing more is written to the
// output.
func (c *Console) Err() error {
	var errs []error
	for _, o := range []*output{c.out, c.err} {
		o.place.mu.Lock()
		errs = append(errs, o.failure)
		o.place.mu.Unlock()
	}
	return errors.Join(errs...)
}

func firstLine(data []byte) (line, rest []byte) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[:i+1], data[i+1:]
	}
	return data, nil
}

// prefixFor returns the start of a stream's lines.
func (c *Console) prefixFor(p *place, s Stream) []byte {
	text := p.prefixes.of(s, c.prefix)
	if !c.timestamps {
		return text
	}
	p.stamped = append(c.now().AppendFormat(p.stamped[:0], "15:04:05.000 "), text...)
	return p.stamped
}
