package tasklog

import (
	"os"
	"strings"
	"unicode"

	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// SetStatus shows text as the terminal's last line, below all lines, until the next call. An empty
// text removes it. If there is no terminal, SetStatus does nothing.
func (c *Console) SetStatus(text string) {
	c.err.place.mu.Lock()
	defer c.err.place.mu.Unlock()
	c.setStatus(text)
}

func (c *Console) setStatus(text string) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	p := c.err.place
	if !p.terminal || text == p.status {
		return
	}
	p.status = text
	c.err.buf = p.appendErase(c.err.buf)
	c.end(c.err)
}

// appendErase removes the status line, and leaves the cursor on that line.
func (p *place) appendErase(dst []byte) []byte {
	if p.drawn {
		dst = append(dst, "\r\x1b[K"...)
	}
	p.drawn = false
	return dst
}

// IsTerminal reports whether f is a terminal that understands escape sequences.
func IsTerminal(f *os.File) bool {
	if term := os.Getenv("TERM"); term == "" || term == "dumb" {
		return false
	}
	return pty.Is(f)
}
