package worker

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// A client on the server's machine reads the files directly.
func TestWhereAHostWorkerListens(t *testing.T) {
	for _, c := range []struct{ given, server, want string }{
		{"", "127.0.0.1:7233", ""},
		{"", "localhost:7233", ""},
		{"", "temporal.example:7233", ":0"},
		{"off", "temporal.example:7233", ""},
		{":7070", "127.0.0.1:7233", ":7070"},
		{"10.0.0.7", "temporal.example:7233", "10.0.0.7"},
	} {
		got := must.Get(listenAddress(c.given, cli.Target{Options: connect.Options{Address: c.server}}))(t)
		assert.Equal(t, c.want, got, "%+v", c)
	}
}

func TestEscape(t *testing.T) {
	var e escape
	now := time.Now()
	press := func(keys string, apart time.Duration) (hits int) {
		for _, key := range []byte(keys) {
			now = now.Add(apart)
			if e.typed(key, now) {
				hits++
			}
		}
		return hits
	}
	assert.Equal(t, 1, press("\x1d\x1d\x1d", 100*time.Millisecond))
	assert.Zero(t, press("\x1d\x1da\x1d", 100*time.Millisecond), "others in between")
	assert.Zero(t, press("a\x1d\x1d\x1d\x1d", time.Second), "too slowly")
	assert.Equal(t, 2, press("a\x1d\x1d\x1d\x1d\x1d\x1d", time.Millisecond), "again")
}

func TestScreen(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	s := &cli.Screen{File: w}
	write := func(text string) {
		_, err := io.WriteString(s, text)
		require.NoError(t, err)
	}
	write("before\n")
	s.Raw.Store(true)
	write("one\ntwo\n")
	s.Relay([]byte("(Pdb) "))
	write("[worker-0]: line\n")
	s.Relay([]byte("x\r\n"))
	write("line\n")
	s.Relay([]byte("prompt"))
	s.Finish()
	write("after\n")
	require.NoError(t, w.Close())
	got := must.Get(io.ReadAll(r))(t)
	assert.Equal(t, "before\n"+
		"one\r\ntwo\r\n"+
		"(Pdb) \r\n[worker-0]: line\r\n"+
		"x\r\nline\r\n"+
		"prompt\nafter\n", string(got))
}

// The escape counts like a signal, although no signal was sent.
func TestEscapeIsNoSignal(t *testing.T) {
	var i cli.Interruption
	assert.Equal(t, 1, i.Add(escaped{}))
	assert.Zero(t, i.Add(escaped{}), "so soon it is the same")
	assert.Equal(t, "Ctrl-] three times", cli.NameOfSignal(i.First))
	assert.Equal(t, exitcode.Interrupted, cli.CodeOfSignal(i.First))
}

func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed")
	}
	// verify returns systemd's complaints about a unit.
	verify := func(text string) string {
		const name = "clusterrun-of-a-test@.service"
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), program, "verify", "--man=no", path).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "clusterrun") {
			t.Skipf("systemd-analyze does not work here: %v: %s", err, out)
		}
		var about []string
		for line := range strings.Lines(string(out)) {
			// Other units of this machine may be wrong.
			if strings.Contains(line, "clusterrun") {
				about = append(about, line)
			}
		}
		return strings.Join(about, "")
	}
	odd := filepath.Join(t.TempDir(), "100% sure")
	require.NoError(t, os.WriteFile(odd, nil, 0o700))
	text := unitOf(odd)
	assert.Empty(t, verify(text), text)
	assert.Contains(t, verify(strings.Replace(text, "KillMode=", "KilMode=", 1)), "KilMode", "systemd says what is wrong")
	assert.NotEmpty(t, verify(unitOf(odd+"er")), "it looks for the program")
}
