package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Output of a program is shown, kept and quoted in the report, independent of how it opens its
// streams.
func TestNothingThatIsWrittenIsLost(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, stdout, stderr := l.run("run", "--id", "truncates", "-n", "1", "--", "bash", "-c",
		`for i in $(seq 20); do echo "step $i" > /dev/stderr; done; echo "FATAL: x" > /dev/stderr; echo "cleaning up" > /dev/stderr; exit 3`)
	require.Equal(t, 3, code, stdout)
	var want strings.Builder
	for i := range 20 {
		fmt.Fprintf(&want, "[worker-0]:    step %d\n", i+1)
	}
	want.WriteString("[worker-0]:    FATAL: x\n[worker-0]:    cleaning up\n")
	assert.Contains(t, stderr, want.String())
	assert.Contains(t, stderr, "\n      FATAL: x\n      cleaning up\n")
	_, _, logged := l.run("logs", "truncates")
	assert.Equal(t, want.String(), logged)
}

// A failure is reported with its last lines even if the output goes to no file.
func TestTheLastLinesOfWhatGoesToNoFile(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, stdout, stderr := l.run("torchrun", "--no-python", "bash", "-c", `echo out; echo "FATAL: y" > /dev/stderr; exit 3`)
	require.Equal(t, 1, code, stderr)
	assert.Equal(t, "out\n", stdout)
	assert.Contains(t, "\n"+stderr, "\nFATAL: y\n")
	assert.Contains(t, stderr, "\n      FATAL: y\n")
	stdout, stderr = l.succeeds("logs", "--last")
	assert.Equal(t, "[default-0]:   out\n", stdout)
	assert.Equal(t, "[default-0]:   FATAL: y\n", stderr)

	l.ok("run", "-n", "1", "true")
	_, stderr = l.succeeds("logs", "--last")
	assert.Contains(t, stderr, "has written nothing yet")
}

// Read from a pipe, the output of a run has the task that the filter names (SEED-78), with the
// time of day, and only the last state of a progress bar (SEED-90). Bytes for a terminal stay
// as they are.
func TestConsoleOfARun(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	code, stdout, stderr := s.CLI(t, "run", "-n", "2", "--set", "logs.timestamps=true", "--filter", "worker-1", "--", "/bin/bash", "-c",
		`printf '\r 10%%\r 50%%\r100%%\n' >&2; printf '\033[31mrank %s\r\nlast' $RANK`)
	assert.Equal(t, 0, code, stderr)
	const stamp = `\d\d:\d\d:\d\d\.\d{3} `
	assert.Regexp(t, `^`+stamp+`\[worker-1\]:    \x1b\[31mrank 1\r\n`+stamp+`\[worker-1\]:    last\n$`, stdout)
	assert.Regexp(t, `(?m)^`+stamp+`\[worker-1\]:    100%$`, stderr)
	assert.NotContains(t, stderr, "50%")
	assert.NotContains(t, stderr, "worker-0]")
}

// SEED-76: without a log directory no file is followed, and nothing is waited for. Unlike the
// seed, clusterrun does not lose the output.
func TestConsoleWithoutLogs(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	code, stdout, stderr := s.CLI(t, "run", "-n", "1", "--log-dir", "/dev/null", "--", "echo", "shown")
	assert.Equal(t, 0, code, stderr)
	assert.Equal(t, "shown\n", stdout)
	assert.Contains(t, stderr, "no logs are kept")
}

// redirected starts a run whose output is redirected by words of the shell. $FIFO is a pipe
// without a reader.
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

// More than a pipe holds.
const muchOutput = `head -c 300000 /dev/zero | tr "\0" "\n"; `

// Signals have their effect even if the output has no reader: one stops the run and ends the
// command, with output left to show.
func TestOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	up := `touch up; exec sleep 1000`
	for id, c := range map[string]struct{ words, script, said string }{
		"stdout": {`>"$FIFO"`, muchOutput + up, "run stdout cancelled"},
		"stderr": {`2>"$FIFO"`, "{ " + muchOutput + "} >&2; " + up, ""},
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
				assert.Contains(t, p.Stderr(), "the output is not read, so not all of it was shown; logs in ")
			}
		})
	}
}

// One output that cannot be written does not silence the other, and does no harm to
// the run.
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
				assert.Contains(t, p.Stderr(), "write /dev/stdout: no space left on device; run stdout goes on; logs in ")
				assert.Contains(t, p.Stderr(), "run stdout succeeded")
				assert.Contains(t, p.Stderr(), "not all output could be written: write /dev/stdout: no space left on device")
			}
		})
	}
	t.Run("fails", func(t *testing.T) {
		t.Parallel()
		p := redirected(t, s, "fails", ">/dev/full", "bash", "-c", "echo out; exit 3")
		assert.Equal(t, 3, p.ExitCode(), "the root cause counts")
	})
}
