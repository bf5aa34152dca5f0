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
// unshown.
func TestOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	up := `touch up; exec sleep 1000`
	for id, c := range map[string]struct{ words, script, said string }{
		"stdout": {`>"$FIFO"`, muchOutput + up, "run stdout cancelled"},
		"both":   {`>"$FIFO" 2>&1`, muchOutput + up, ""},
		"over":   {`>"$FIFO"`, muchOutput + "touch up", "run over succeeded"},
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
			p.Kill(syscall.SIGTERM)
			assert.Equal(t, 143, p.ExitCode())
			if c.said != "" {
				assert.Contains(t, p.Stderr(), c.said)
				assert.Contains(t, p.Stderr(), "not all output was shown because nobody reads it; logs in ")
			}
		})
	}
}

// If stdout or stderr cannot be written, this affects neither the rest of the output nor the run.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	const script = `for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.1; done; touch done`
	for id, c := range map[string]struct {
		words string
		shown func(*harness.Process) string
	}{
		"stdout": {">/dev/full", (*harness.Process).Stderr},
		"stderr": {"2>/dev/full", (*harness.Process).Stdout},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			p := redirected(t, s, id, c.words, "bash", "-c", script)
			assert.Equal(t, 125, p.ExitCode())
			assert.FileExists(t, filepath.Join(p.Dir, "done"))
			assert.Regexp(t, `(?s)\[worker-0\]:    (out|err) 1\n.*\[worker-0\]:    (out|err) 3\n`, c.shown(p))
			if id == "stdout" {
				assert.Contains(t, p.Stderr(), "write /dev/stdout: no space left on device; run stdout continues; logs in ")
				assert.Contains(t, p.Stderr(), "run stdout succeeded")
				assert.Contains(t, p.Stderr(), "could not write all output: write /dev/stdout: no space left on device")
			}
		})
	}
	t.Run("fails", func(t *testing.T) {
		t.Parallel()
		p := redirected(t, s, "fails", ">/dev/full", "bash", "-c", "echo out; exit 3")
		assert.Equal(t, 3, p.ExitCode(), "the root cause counts")
	})
}
