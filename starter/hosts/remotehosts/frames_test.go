package remotehosts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// noisyPipe adds foreign text before and after each write.
type noisyPipe struct {
	bytes.Buffer
	noise string
}

func (p *noisyPipe) Write(b []byte) (int, error) {
	if len(b) > maxFrame {
		return 0, errors.New("others may write in the middle of it")
	}
	p.WriteString(p.noise)
	n, err := p.Buffer.Write(b)
	p.WriteString(p.noise)
	return n, err
}

// A host is understood whatever else is written to its stdout.
func TestFrames(t *testing.T) {
	want := strings.Repeat("content"+mark, 10000)
	for _, noise := range []string{"", "mail\r", "Welcome\n\n", "\x1b]0;title\a", mark[:5], mark[:1], strings.Repeat("long", 10000)} {
		p := &noisyPipe{noise: noise}
		w := frameWriter{p}
		for _, b := range []string{"", want[:1], want[1:]} {
			n := must.Get(w.Write([]byte(b)))(t)
			require.Equal(t, len(b), n)
		}
		r := &frameReader{in: bufio.NewReaderSize(iotest.HalfReader(p), 64)}
		require.NoError(t, r.next(), "the first frame says that it is ready")
		got := must.Get(io.ReadAll(r))(t)
		assert.True(t, want == string(got), "%.20q: %d bytes of %d", noise, len(got), len(want))
	}
}

// Text written instead of a frame may be the reason.
func TestNoFrame(t *testing.T) {
	r := &frameReader{in: bufio.NewReader(strings.NewReader("Welcome\r\nChoose a project: "))}
	err := r.next()
	require.ErrorIs(t, err, io.EOF)
	assert.EqualError(t, r.afterText(err), `EOF; its shell printed "Welcome; Choose a project:" to stdout`)
	silent := &frameReader{in: bufio.NewReader(strings.NewReader("\n"))}
	assert.EqualError(t, silent.afterText(silent.next()), "EOF")
}
