package tasklog

import "bytes"

// streamKey names a stream of a task, regardless of the attempt.
type streamKey struct {
	rank   int
	stderr bool
}

// line is the state of an unfinished line that is a bar or contains escape sequences.
type line struct {
	Stream
	filter
	bar *bar // nil for other lines
}

// isNothing reports whether the line no longer needs state.
func (l *line) isNothing() bool {
	return l.bar == nil && len(l.rest) == 0 && l.pen == "" && l.link == ""
}

// lineOf returns the state of the line that a chunk continues, or nil.
func (c *Console) lineOf(o *output, chunk Chunk) *line {
	l := o.place.lines[streamKey{chunk.Rank, chunk.Stderr}]
	switch {
	case l == nil:
		return nil
	case l.Attempt != chunk.Attempt:
		c.endLine(o, l)
		return nil
	case chunk.Start && l.bar != nil: // the file was truncated
		c.endLine(o, l)
		return nil
	}
	return l
}

// endLine ends a line that will not continue. A bar's last state is shown, unless it was already
// shown.
func (c *Console) endLine(o *output, l *line) {
	delete(o.place.lines, streamKey{l.Rank, l.Stderr})
	if l.bar != nil {
		c.showChanged(o, l)
	}
}

// careful writes a chunk with carriage returns or, for a terminal, with escape sequences.
func (c *Console) careful(o *output, l *line, chunk Chunk) {
	if l == nil {
		l = &line{Stream: chunk.Stream}
	}
	for data := chunk.Data; len(data) > 0; {
		var text []byte
		text, data = firstLine(data)
		c.carefulLine(o, l, text)
	}
	key := streamKey{l.Rank, l.Stderr}
	if l.isNothing() {
		delete(o.place.lines, key)
	} else {
		o.place.lines[key] = l
	}
}

// carefulLine writes a line, or a piece of one.
func (c *Console) carefulLine(o *output, l *line, text []byte) {
	text, newline := bytes.CutSuffix(text, []byte("\n"))
	for len(text) > 0 {
		piece, rest := text, []byte(nil)
		if i := bytes.IndexByte(text, '\r'); i >= 0 {
			piece, rest = text[:i], text[i:]
		}
		text = bytes.TrimLeft(rest, "\r")
		returns := len(rest) - len(text)
		if returns > 0 && len(text) == 0 && newline && l.bar == nil {
			// The line ends with \r\n, like lines on other systems.
			c.piece(o, l, piece, rest, true)
			return
		}
		if returns > 0 && l.bar == nil && !o.place.isOpen(l.Stream) {
			l.bar, l.erased = &bar{}, false
		}
		if len(piece) > 0 {
			c.feed(o, l, piece)
		}
		if returns > 0 {
			if l.bar == nil {
				l.bar, l.erased = &bar{}, false
			}
			l.bar.returns += returns
			l.rest = nil
		}
	}
	if !newline {
		return
	}
	switch b := l.bar; {
	case b == nil:
		c.piece(o, l, nil, nil, true)
	case len(b.state()) == 0 && !l.erased:
		// The line contains only carriage returns.
		end := bytes.Repeat([]byte("\r"), b.returns)
		l.bar = nil
		c.piece(o, l, nil, end, true)
	default:
		end := append(bytes.Repeat([]byte("\r"), b.returns), '\n')
		l.rest = nil
		c.showBar(o, l, end)
		l.bar = nil
	}
}

// feed adds text without carriage returns.
func (c *Console) feed(o *output, l *line, text []byte) {
	b := l.bar
	if b == nil {
		c.piece(o, l, text, nil, false)
		return
	}
	begins := b.returns > 0 || len(b.current) == 0
	if b.returns > 0 {
		b.renew()
	}
	if len(b.current)+len(text) > maxBar {
		// This is not a bar. It continues as text.
		begun := bytes.Clone(b.current)
		l.bar = nil
		if o.place.terminal {
			begun = closed(begun)
		}
		c.finishLine(o)
		c.raw(o, l, begun)
		c.piece(o, l, text, nil, false)
		return
	}
	if !o.place.terminal {
		b.current = append(b.current, text...)
	} else {
		if begins {
			b.current = append(append(b.current, l.pen...), l.link...)
		}
		l.erased = false
		b.current = l.appendSafe(b.current, text)
		if l.erased {
			b.last = b.last[:0]
		}
	}
	b.changed = true
	c.barChanged(o.place)
}

// piece writes a piece of a line that is not a bar, including carriage returns before the end of
// the line, and the end itself.
func (c *Console) piece(o *output, l *line, text, returns []byte, newline bool) {
	if o.place.terminal && len(text) > 0 {
		shown := append(append(o.place.text[:0], l.pen...), l.link...)
		shown = l.appendSafe(shown, text)
		text = closed(shown)
		o.place.text = text
	}
	if newline {
		l.rest = nil
		returns = append(bytes.Clone(returns), '\n')
	}
	if len(text)+len(returns) == 0 {
		return
	}
	c.raw(o, l, text)
	c.add(o, returns, nil)
	o.place.open = !newline
}

// raw writes a piece of a line unchanged. The line remains open.
func (c *Console) raw(o *output, l *line, text []byte) {
	if o.place.isOpen(l.Stream) {
		c.add(o, text, nil)
		return
	}
	c.finishLine(o)
	c.add(o, c.prefixFor(o.place, l.Stream), text)
	o.place.open, o.place.stream = true, l.Stream
}

// showChanged writes a bar's state as a line, unless it was already shown.
func (c *Console) showChanged(o *output, l *line) {
	if l.bar.changed && !isBlank(l.bar.state()) {
		c.showBar(o, l, []byte("\n"))
	}
}

// showBar writes a bar's state as a line.
func (c *Console) showBar(o *output, l *line, end []byte) {
	c.finishLine(o)
	state := l.bar.state()
	if o.place.terminal {
		o.place.text = closed(append(o.place.text[:0], state...))
		state = o.place.text
	}
	c.add(o, c.prefixFor(o.place, l.Stream), state)
	c.add(o, end, nil)
	l.bar.changed = false
}
