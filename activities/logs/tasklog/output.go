package tasklog

import (
	"io"
	"os"
	"reflect"
)

// output is one of the two outputs for lines.
type output struct {
	w   io.Writer
	buf []byte
	// place is shared by the two outputs if both go to the same place.
	place *place
	// failure is the first write error.
	failure error
}

// consoleBuffer is the size of one write. It is larger than a [Follower]'s chunks, so that most
// chunks need only one write.
const consoleBuffer = 512 << 10

// add appends one line, given in two parts, to the buffer.
func (c *Console) add(o *output, a, b []byte) {
	o.buf = o.place.appendErase(o.buf)
	if len(o.buf)+len(a)+len(b) > consoleBuffer {
		c.flush(o)
		if len(a)+len(b) > consoleBuffer {
			c.write(o, a)
			c.write(o, b)
			return
		}
	}
	o.buf = append(append(o.buf, a...), b...)
}

// finishLine ends an output's unfinished line.
func (c *Console) finishLine(o *output) {
	if o.place.open {
		c.add(o, []byte("\n"), nil)
		o.place.open = false
	}
}

// end writes the buffer, and the status line below it. It turns wrapping off, because a status line
// that is too long would otherwise become two lines, of which only one would be erased. This way,
// the terminal's width does not matter.
func (c *Console) end(o *output) {
	if p := o.place; !p.drawn && p.status != "" {
		c.finishLine(o)
		o.buf = append(append(append(o.buf, "\x1b[?7l"...), p.status...), "\x1b[?7h"...)
		p.drawn = true
	}
	c.flush(o)
}

func (c *Console) flush(o *output) {
	c.write(o, o.buf)
	o.buf = o.buf[:0]
}

func (c *Console) write(o *output, b []byte) {
	if len(b) == 0 || o.failure != nil {
		return
	}
	_, o.failure = o.w.Write(b)
}

// FileOf returns the file that a stream reads or writes: the stream itself, or the result of its
// method File, or nil.
func FileOf(stream any) *os.File {
	switch s := stream.(type) {
	case *os.File:
		return s
	case interface{ File() *os.File }:
		return s.File()
	}
	return nil
}

// samePlace reports whether an unfinished line on one writer would mix with lines on the other,
// as with 2>&1 or on a terminal.
func samePlace(a, b io.Writer) bool {
	fa, fb := FileOf(a), FileOf(b)
	if fa == nil || fb == nil {
		return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
	}
	ia, err := fa.Stat()
	ib, err2 := fb.Stat()
	return err == nil && err2 == nil && os.SameFile(ia, ib)
}
