package e2e

import (
	"encoding/json"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
)

// No run stays open if `clusterrun run` is ended at any moment of its start: the next command
// ends what is left.
func TestNoSignalLeavesAnOpenRun(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("run", "-n", "1", "--", "true") // starts the server
	require.Zero(t, code, stderr)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		for after := 10 * time.Millisecond; after <= 90*time.Millisecond; after += 20 * time.Millisecond {
			p := l.start("run", "--env", l.mark, "-n", "2", "--", "sleep", "1000")
			time.AfterFunc(after, func() { p.Kill(signal) })
			assert.NotZero(t, p.ExitCode(), p.Stderr())
		}
	}
	harness.Eventually(t, "no run is open", func() bool {
		code, out, stderr := l.run("list", "--open", "--json")
		var open []starter.Summary
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(out), &open), out)
		return len(open) == 0
	})
	harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
}

// A run without a worker for its workflow cannot be stopped by request, but is ended all the
// same.
func TestARunThatNobodyExecutesIsEnded(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	var both sync.WaitGroup
	for command, flags := range map[string][]string{"stop": nil, "kill": {"--kill"}} {
		code, _, stderr := s.CLI(t, "submit", "--queue", "nobody", "--id", command, "-n", "1", "--dir", t.TempDir(), "--", "true")
		require.Zero(t, code, stderr)
		code, out, stderr := s.CLI(t, "status", "--why", command)
		require.Zero(t, code, stderr)
		assert.Contains(t, out, "no worker executes it; a `clusterrun worker` for the queue nobody would")
		p := s.StartCLI(t, append([]string{"stop", command}, flags...)...)
		both.Go(func() {
			assert.Zero(t, p.ExitCode(), p.Stderr())
			assert.Equal(t, "ended: "+command+", without a result: no host worker executes it\n", p.Stdout())
		})
	}
	both.Wait()
	code, _, stderr := s.CLI(t, "run", "--remote", "--queue", "nobody", "--placement-timeout", "1s", "-n", "1", "--dir", t.TempDir(), "--", "true")
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, "no worker served the queue nobody within the placement timeout of 1s")
}
