package tasklog

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var aLine = regexp.MustCompile(`^(\[worker-[01]\]: {4}|status)`)

// For any text of two tasks, cut anywhere, each line on a terminal begins with a prefix that is
// not colored or moved by a task. Without carriage returns, an output that is not a terminal
// gets the bytes as they were written.
func FuzzConsole(f *testing.F) {
	for _, s := range []string{
		"a\n\x1b[31mb\nc", "\r1%\r2%\n", "x\r\n", "\x1b]8;;u\x1b\\a\n\r\x1b[K\r\n", "\r\x1b[1m\r\n\n", "a\rb\x1b[A\n\n\rc",
		"\r" + strings.Repeat("x", maxBar) + "\ry\n", "\r   \r\r\n\xc2\r\n",
	} {
		f.Add([]byte(s), []byte("other\n\rbar"), byte(3))
	}
	f.Fuzz(func(t *testing.T, one, two []byte, step byte) {
		texts := [2][]byte{bytes.ReplaceAll(one, []byte("\b"), nil), bytes.ReplaceAll(two, []byte("\b"), nil)}
		term := newTerminal(1<<20, 8)
		c := NewConsole(term, term, ConsoleOptions{Prefix: workers, Terminal: always})
		var out bytes.Buffer
		plain := NewConsole(&out, io.Discard, ConsoleOptions{})
		var want [2]bytes.Buffer
		var open [2]bool
		n := 1 + int(step)
		for i := 0; len(texts[0])+len(texts[1]) > 0; i++ {
			rank := i % 2
			piece := texts[rank][:min(n, len(texts[rank]))]
			texts[rank] = texts[rank][len(piece):]
			switch {
			case len(piece) > 0:
				chunk := Chunk{Stream: Stream{Rank: rank}, Data: piece, Start: !open[rank]}
				open[rank] = !chunk.End()
				want[rank].Write(piece)
				c.Deliver(chunk)
				if rank == 0 {
					plain.Deliver(chunk)
				}
			case i%3 == 0:
				c.SetStatus(fmt.Sprint("status ", i))
			case i%5 == 0:
				c.showBars(c.err.place)
				plain.showBars(plain.out.place)
			}
		}
		require.NoError(t, c.Close())
		require.NoError(t, plain.Close())
		assert.Empty(t, term.unknown)
		assert.Empty(t, c.err.place.bars)
		for i, l := range term.text() {
			if l != "" && !aLine.MatchString(l+"    ") {
				t.Errorf("%q", l)
			}
			if l != "" {
				assert.Regexp(t, `^\[worker-[01]\]:    `, term.pens(i))
			}
		}
		if text := want[0].String(); !strings.Contains(text, "\r") {
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			assert.Equal(t, text, out.String())
		}
	})
}
