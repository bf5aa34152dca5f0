package tasklog

import (
	"bytes"
	"errors"
	"io"
	"sync"
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
// sequences that move the cursor are omitted; elsewhere all bytes are kept. Of a line with carriage
// returns, which is a progress bar, only the last state is shown. All methods may be called
// concurrently.
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

// place is the destination of one or both outputs. It holds the text shown and the status line.
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

	prefixes prefixes // of the attempts that last had a line
	stamped  []byte   // a prefix with its time
	text     []byte   // a line, made safe
}

func newPlace(w io.Writer, o ConsoleOptions) *place {
	return &place{terminal: o.Terminal(w), prefixes: prefixes{}}
}

func (p *place) isOpen(s Stream) bool { return p.open && p.stream == s }

// Deliver writes a chunk; it is a sink for a [Follower].
func (c *Console) Deliver(chunk Chunk) {
	o := c.outputOf(chunk.Stderr)
	o.place.mu.Lock()
	defer o.place.mu.Unlock()
	c.deliver(o, chunk)
	c.end(o)
}

func (c *Console) deliver(o *output, chunk Chunk) {
	p := o.place
	if chunk.Start && p.isOpen(chunk.Stream) {
		c.finishLine(o)
	}
	prefix := c.prefixFor(p, chunk.Stream)
	bars := bytes.IndexByte(chunk.Data, '\r') >= 0
	safe := !p.terminal || isSafe(chunk.Data)
	for data, start := chunk.Data, chunk.Start; len(data) > 0; start = true {
		var line []byte
		line, data = firstLine(data)
		if bars && bytes.IndexByte(line, '\r') >= 0 {
			if state := barState(line); state != nil {
				line, start = state, true
				c.finishLine(o)
			}
		}
		if !start && !p.isOpen(chunk.Stream) && string(line) == "\n" || len(line) == 0 {
			continue // all of the line has been shown
		}
		if !safe {
			p.text = appendSafe(p.text[:0], line)
			line = p.text
		}
		c.line(o, chunk.Stream, prefix, line)
	}
}

// line writes a line, or a piece of one.
func (c *Console) line(o *output, s Stream, prefix, text []byte) {
	if o.place.isOpen(s) {
		c.add(o, text, nil)
	} else {
		c.finishLine(o)
		c.add(o, prefix, text)
	}
	o.place.open, o.place.stream = !bytes.HasSuffix(text, []byte("\n")), s
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
	c.deliver(o, line)
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

// Close finishes the last lines and removes the status line below them. It returns each output's
// first write error.
func (c *Console) Close() error {
	c.SetStatus("")
	for _, o := range []*output{c.err, c.out} {
		o.place.mu.Lock()
		c.finishLine(o)
		c.end(o)
		o.place.mu.Unlock()
	}
	return c.Err()
}

// Err returns each output's first write error. After an error nothing more is written to that
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
