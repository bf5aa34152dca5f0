package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// polite is a task that takes a while to exit after its stop signal.
var polite = harness.Napping(`trap 'echo asked; sleep 0.5; exit 3' TERM; touch up; while :; do nap; done`)

func awaitUp(t *testing.T, p *harness.Process) {
	t.Helper()
	harness.Eventually(t, "the task is up", func() bool {
		_, err := os.Stat(filepath.Join(p.Dir, "up"))
		return err == nil
	})
}

// A full disk with the state directory is reported, before and during a run, and one signal still
// stops the run.
func TestTheDiskUnderTheStateDirectoryIsFull(t *testing.T) {
	t.Parallel()
	home, state := smallState(t)
	ballast := filepath.Join(state, "ballast")
	start := func() *harness.Process {
		return harness.Start(t, home, harness.Env(home), harness.Clusterrun(t), "run", "--state-dir", state, "-n", "1", "--", "bash", "-c", polite)
	}
	fill := func() { _ = os.WriteFile(ballast, make([]byte, 8<<20), 0o600) }

	fill()
	p := start()
	assert.Equal(t, 125, p.ExitCode())
	assert.Contains(t, p.Stderr(), "the disk with "+state+" is full")
	p = harness.Start(t, home, harness.Env(home), harness.Clusterrun(t), "dev", "--state-dir", state, "--port", "0", "--headless")
	assert.Equal(t, 125, p.ExitCode())
	assert.Contains(t, p.Stderr(), "the disk with "+state+" is full")

	require.NoError(t, os.Remove(ballast))
	p = start()
	awaitUp(t, p)
	fill()
	harness.Eventually(t, "the disk is named", func() bool { return strings.Contains(p.Stderr(), "the disk with "+state+" is full") })
	p.Kill(syscall.SIGTERM)
	assert.Equal(t, 143, p.ExitCode())
	assert.Contains(t, p.Stderr(), "cancelled (exit code 143)")
}

// smallState returns a home containing a state directory on a disk of 8 MiB. Its own server is
// stopped with the test.
func smallState(t *testing.T) (home, state string) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	home = t.TempDir()
	state = filepath.Join(home, "state")
	require.NoError(t, os.Mkdir(state, 0o755))
	require.NoError(t, syscall.Mount("tmpfs", state, "tmpfs", 0, "size=8m"))
	t.Cleanup(func() {
		defer func() { _ = syscall.Unmount(state, syscall.MNT_DETACH) }()
		var server struct{ PID int }
		ready := must.Get(filepath.Glob(filepath.Join(state, "server", "ready*.json")))(t)
		require.Len(t, ready, 1)
		b := must.Get(os.ReadFile(ready[0]))(t)
		require.NoError(t, json.Unmarshal(b, &server))
		_ = syscall.Kill(server.PID, syscall.SIGKILL)
		harness.Eventually(t, "the own server has ended", func() bool { s := harness.State(server.PID); return s == "" || s == "Z" })
	})
	return home, state
}

// No run stays open if `clusterrun run` is killed while starting. The next command cleans up.
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

// A run without a worker for its workflow cannot be stopped by request, but is still closed.
func TestARunThatNobodyExecutesIsEnded(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	var both sync.WaitGroup
	for command, flags := range map[string][]string{"stop": nil, "kill": {"--kill"}} {
		s.OK(t, "submit", "--queue", "nobody", "--id", command, "-n", "1", "--dir", t.TempDir(), "--", "true")
		assert.Contains(t, s.OK(t, "status", "--why", command), "; a `clusterrun worker` for the queue nobody would execute it, and `clusterrun stop "+command+"` ends it")
		p := s.StartCLI(t, append([]string{"stop", command}, flags...)...)
		both.Go(func() {
			assert.Zero(t, p.ExitCode(), p.Stderr())
			assert.Equal(t, "ended: "+command+", without a result: no host worker executes it\n", p.Stdout())
		})
	}
	both.Wait()
	assert.Contains(t, s.Fails(t, 125, "run", "--remote", "--queue", "nobody", "--set", "placement_timeout=1s", "-n", "1", "--dir", t.TempDir(), "--", "true"), "no worker served the queue nobody within the placement timeout of 1s")
}
