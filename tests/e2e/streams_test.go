package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// redirected starts a run with output redirected by shell syntax. $FIFO is a pipe without a
// reader.
func redirected(t *testing.T, s *harness.Server, id, words string, args ...string) *harness.Process {
	t.Helper()
	home := t.TempDir()
	fifo := filepath.Join(home, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	open, err := os.OpenFile(fifo, os.O_RDWR, 0) // or the shell would wait for a reader
	require.NoError(t, err)
	t.Cleanup(func() { open.Close() })
	argv := append([]string{"sh", "-c", `exec "$@" ` + words, "sh", harness.Clusterrun(t), "run", "--id", id, "-n", "1", "--"}, args...)
	return harness.Start(t, home, harness.Env(home, "FIFO="+fifo, "TEMPORAL_ADDRESS="+s.Address), argv...)
}

// More than fits in a pipe.
const muchOutput = `head -c 300000 /dev/zero | tr "\0" "\n"; `

// Signals work even if the output is not read: one stops the run and the command, with output
// unshown. If stdout or stderr cannot be written, this affects neither the rest of the output nor
// the run.
func TestOutputThatIsNotTaken(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	const up, lines = `touch up; exec sleep 1000`, `for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.1; done; touch up`
	for id, c := range map[string]struct {
		words, script string
		code          int
		said          []string
	}{
		"unread": {`>"$FIFO"`, muchOutput + up, 143, []string{"run unread cancelled", "not all output was shown because nobody reads it; logs in "}},
		"both":   {`>"$FIFO" 2>&1`, muchOutput + up, 143, nil},
		"over":   {`>"$FIFO"`, muchOutput + "touch up", 143, []string{"run over succeeded", "not all output was shown because nobody reads it; logs in "}},
		"stdout": {">/dev/full", lines, 125, []string{"]:    err 1\n", "]:    err 3\n", "write /dev/stdout: no space left on device; run stdout continues; logs in ", "run stdout succeeded",
			"could not write all output: write /dev/stdout: no space left on device"}},
		"stderr": {"2>/dev/full", lines, 125, []string{"]:    out 1\n", "]:    out 3\n"}},
		"fails":  {">/dev/full", "echo out; touch up; exit 3", 3, nil},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			p := redirected(t, s, id, c.words, "bash", "-c", c.script)
			harness.Eventually(t, "the task is up", func() bool {
				_, err := os.Stat(filepath.Join(p.Dir, "up"))
				return err == nil
			})
			if id == "over" {
				require.NoError(t, s.Client().GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
			}
			if c.code == 143 {
				p.Kill(syscall.SIGTERM)
			}
			assert.Equal(t, c.code, p.ExitCode(), "of several, the root cause counts")
			for _, said := range c.said {
				assert.Contains(t, p.Stdout()+p.Stderr(), said)
			}
		})
	}
}
