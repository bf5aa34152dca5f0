package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Output of a program is shown, kept and quoted in the report, independent of how it opens its
// streams, and even if its file is renamed while it writes.
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

	p := l.start("run", "--id", "renamed", "-n", "1", "--log-dir", "logs", "--", "bash", "-c",
		`for i in $(seq 30); do echo line $i; if [ $((i % 10)) = 0 ]; then until [ -e go-$i ]; do sleep 0.01; done; fi; done`)
	for i, replace := range []func(path string) error{func(path string) error { return os.Rename(path, path+".1") }, os.Remove, nil} {
		last := (i + 1) * 10
		harness.Eventually(t, "the console shows what came before", func() bool {
			return strings.Contains(p.Stdout(), fmt.Sprintf("line %d\n", last))
		})
		if replace != nil {
			paths, err := filepath.Glob(filepath.Join(l.home, "logs/renamed/*/attempt_0/0/stdout.log"))
			require.NoError(t, err)
			require.Len(t, paths, 1)
			require.NoError(t, replace(paths[0]))
		}
		l.write(fmt.Sprintf("go-%d", last), "")
	}
	require.Zero(t, p.ExitCode(), p.Stderr())
	shown := ""
	for line := range strings.Lines(p.Stdout()) {
		if strings.Contains(line, "   line ") {
			shown += line
		}
	}
	want.Reset()
	for i := range 30 {
		fmt.Fprintf(&want, "[worker-0]:    line %d\n", i+1)
	}
	assert.Equal(t, want.String(), shown)
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
	code, stdout, stderr = l.run("logs", "--last")
	require.Zero(t, code, stderr)
	assert.Equal(t, "[default-0]:   out\n", stdout)
	assert.Equal(t, "[default-0]:   FATAL: y\n", stderr)

	code, _, stderr = l.run("run", "-n", "1", "true")
	require.Zero(t, code, stderr)
	code, _, stderr = l.run("logs", "--last")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "has written nothing yet")
}
