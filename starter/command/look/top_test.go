package look

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/top"
	"github.com/clusterrun/clusterrun/tests/must"
)

// idle is a program that does not fetch by itself.
type idle struct{ *topProgram }

func (idle) Init() tea.Cmd { return nil }

// A panic, here from a missing field, restores the terminal.
func TestTopRestoresTheTerminalAfterAPanic(t *testing.T) {
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	before := must.Get(pty.Modes(slave))(t)
	program := tea.NewProgram(idle{&topProgram{model: top.New("")}}, tea.WithInput(slave), tea.WithOutput(slave), tea.WithoutSignalHandler())
	shown := make(chan string)
	go func() {
		text, drawn := "", false
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			if text += string(b[:n]); err != nil {
				shown <- text
				return
			}
			if !drawn && strings.Contains(text, "looking") {
				drawn = true
				go program.Send(nextMsg{})
			}
		}
	}()
	_, err = program.Run()
	assert.ErrorIs(t, err, tea.ErrProgramPanic)
	after := must.Get(pty.Modes(slave))(t)
	assert.Equal(t, before, after)
	require.NoError(t, slave.Close())
	assert.Regexp(t, `(?s)\x1b\[\?1049h.*looking.*\x1b\[\?1049l`, <-shown, "the screen of before is back")
}

func TestLastLine(t *testing.T) {
	dir := t.TempDir()
	assert.Empty(t, lastLine(""))
	assert.Empty(t, lastLine(dir))
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stdout.log"), []byte(text), 0o600))
	}
	for text, want := range map[string]string{"one\ntwo\n": "two", "one\n10%\r20%": "20%", "\n\n": ""} {
		write(text)
		assert.Equal(t, want, lastLine(dir))
	}
}

// If output is not taken, the newest lines are kept.
func TestHeardOutputIsBounded(t *testing.T) {
	h := &lineBuffer{}
	for range 3 * mostHeard {
		_, _ = h.Write([]byte("old\n"))
	}
	_, _ = h.Write([]byte("ne"))
	_, _ = h.Write([]byte("w\nrest"))
	lines := h.take()
	assert.LessOrEqual(t, len(lines), 2*mostHeard)
	assert.Equal(t, "new", lines[len(lines)-1])
	assert.Empty(t, h.take())
	// A line without an end is bounded, too.
	for range 100 {
		_, _ = h.Write(bytes.Repeat([]byte("x"), 1000))
	}
	assert.LessOrEqual(t, len(h.rest), longestHeard)
	_, _ = h.Write([]byte("\nnext\n"))
	lines = h.take()
	require.Len(t, lines, 2)
	assert.Equal(t, "rest"+strings.Repeat("x", longestHeard-4), lines[0])
	assert.Equal(t, "next", lines[1])
}
