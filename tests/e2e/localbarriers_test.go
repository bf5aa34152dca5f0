package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The spec makes all barriers of its programs local: they pass while there is no server.
func TestLocalBarriersOfTheSpec(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	env := map[string]string{
		"CR": harness.Clusterrun(t), "PYTHONDONTWRITEBYTECODE": "1",
		"PYTHONPATH": filepath.Join(harness.Root(), "activities/tasks/python"),
	}
	run := f.start(&spec.RunSpec{Barriers: spec.BarriersLocal, Env: spec.EnvOf(env), Tasks: []spec.TaskGroup{
		group("worker", 2, `"$CR" task barrier x && echo passed > $DIR/first-$CLUSTERRUN_TASK
until [ -e $DIR/go ]; do nap; done
"$CR" task barrier x && echo passed > $DIR/second-$CLUSTERRUN_TASK`),
		// A pinned address chooses the host for the other tasks, too.
		{Type: "pinned", Addresses: []string{f.worker.Host}, Command: []string{python, "-c", `
import clusterrun, os
clusterrun.barrier("x")
clusterrun.barrier("x")
open(os.environ["DIR"] + "/second-pinned-0", "w").write("passed")`}},
	}})
	for _, name := range []string{"first-worker-0", "first-worker-1"} {
		f.file(name)
	}
	f.Kill()
	touch(t, f, "go")
	for _, name := range []string{"second-worker-0", "second-worker-1", "second-pinned-0"} {
		f.file(name)
	}
	f.Restart()
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
}

// Local barriers of tasks on several hosts could never be released. The spec is refused if it
// names several hosts, or else the placement, before anything starts.
func TestLocalBarriersNeedOneHost(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("run", "--barriers", "local", "--task", "worker=host-a:2222,host-b:2222", "--", "true")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "--barriers: local barriers need all tasks on one host, but the addresses name host-a, host-b; write barriers: server, or pin all tasks to one host")
	code, _, stderr = l.run("validate", "--barriers", "near", "--", "true")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, `--barriers: "near" is not server or local`)

	f := newFixture(t)
	// It has room only for the task that is pinned to it.
	f.StartWorker(t, "--host-name", "host-b", "--slots", "1")
	script := `echo x > $DIR/started-$CLUSTERRUN_TASK`
	s := func() *spec.RunSpec {
		pinned := group("pinned", 1, script)
		pinned.Count, pinned.Addresses = nil, []string{"host-b"}
		return &spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, script), pinned}}
	}
	refused := s()
	refused.Barriers, refused.PlacementTimeout = spec.BarriersLocal, spec.DurationOf(time.Second)
	r := f.result(f.start(refused))
	assert.Equal(t, spec.ErrPlacement, r.ErrorType)
	assert.Equal(t, 125, r.ExitCode)
	assert.Regexp(t, `could not be placed: waited for 3 slots on one host: .* \(barriers: local\)`, r.Message)
	started, err := filepath.Glob(filepath.Join(f.dir, "started-*"))
	require.NoError(t, err)
	assert.Empty(t, started, "nothing was started")

	// The hosts were given back: the same tasks find room for themselves.
	r = f.result(f.start(s()))
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
}

// Listing the barriers of such a run prints why there are none.
func TestLocalBarriersAreNotListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Barriers: spec.BarriersLocal, Env: spec.EnvOf(map[string]string{"CR": harness.Clusterrun(t)}), Tasks: []spec.TaskGroup{
		group("worker", 2, `if [ $RANK = 1 ]; then until [ -e $DIR/go ]; do nap; done; fi; "$CR" task barrier x`),
	}})
	harness.Eventually(t, "one waits", func() bool { return len(barrierClients(f)) == 1 })
	code, stdout, stderr := f.CLI(t, "status", "--barriers", run.GetID())
	require.Zero(t, code, stderr)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "local barriers are not listed", stderr)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600))
	r := f.result(run)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, strings.TrimSpace(r.Message))
}
