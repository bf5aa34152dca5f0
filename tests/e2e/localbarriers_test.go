package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The spec makes all barriers of its programs local: they pass while there is no server.
func TestLocalBarriersOfTheSpec(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	python := must.Get(exec.LookPath("python3"))(t)
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

// Local barriers of tasks on several hosts could never be released, so the placement is refused
// before anything starts.
func TestLocalBarriersNeedOneHost(t *testing.T) {
	t.Parallel()
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
	started := must.Get(filepath.Glob(filepath.Join(f.dir, "started-*")))(t)
	assert.Empty(t, started, "nothing was started")

	// The hosts were given back: the same tasks find room for themselves.
	r = f.result(f.start(s()))
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
}

// Listing the barriers of such a run prints the reason that the list is empty.
func TestLocalBarriersAreNotListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Barriers: spec.BarriersLocal, Env: spec.EnvOf(map[string]string{"CR": harness.Clusterrun(t)}), Tasks: []spec.TaskGroup{
		group("worker", 2, `if [ $RANK = 1 ]; then until [ -e $DIR/go ]; do nap; done; fi; "$CR" task barrier x`),
	}})
	harness.Eventually(t, "one waits", func() bool { return len(barrierClients(f)) == 1 })
	stdout, stderr := f.Succeeds(t, "status", "--barriers", run.GetID())
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "local barriers are not listed", stderr)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600))
	r := f.result(run)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, strings.TrimSpace(r.Message))
}

// If the Temporal side is stopped while a task waits at a barrier that is not local, the task's
// client moves to the next side, as after a kill, and the task sees no error.
func TestTheTemporalSideEndsAtABarrier(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Env: spec.EnvOf(map[string]string{"CR": harness.Clusterrun(t)}), Tasks: []spec.TaskGroup{
		group("worker", 2, `if [ $RANK = 1 ]; then until [ -e $DIR/go ]; do nap; done; fi; "$CR" task barrier x`),
	}})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		harness.Eventually(t, "one waits", func() bool {
			code, stdout, _ := f.CLI(t, "status", "--barriers", run.GetID())
			return code == 0 && stdout != ""
		})
		side := f.worker.Side()
		require.NoError(t, syscall.Kill(side, signal))
		harness.Eventually(t, "there is another side", func() bool { s := f.worker.Side(); return s != side && s != 0 })
	}
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for _, task := range r.Tasks {
		assert.Zero(t, task.Restarts, task.Name)
	}
}

// Tasks on two hosts meet at a barrier, through outages of everything between them.
func TestTasksOfTwoHostsMeet(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	a := s.StartWorker(t, "--host-name", "host-a")
	s.StartWorker(t, "--host-name", "host-b")
	c := s.Client()
	dir := t.TempDir()
	script := fmt.Sprintf(`for i in 0 1 2; do
  while [ ! -e %[1]s/go-$CLUSTERRUN_TASK-$i ]; do nap; done
  %[2]s task barrier --json epoch >> %[1]s/out-$CLUSTERRUN_TASK 2>&1 || { echo code $? >> %[1]s/out-$CLUSTERRUN_TASK; exit 9; }
done`, dir, harness.Clusterrun(t))
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "meet", TaskQueue: spec.TaskQueue}, spec.WorkflowType, &spec.RunSpec{
		Command: harness.Bash(script),
		Tasks:   []spec.TaskGroup{{Type: "worker", Addresses: []string{"host-a:29111", "host-b:29112"}}},
	})
	require.NoError(t, err)
	let := func(task, round int) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("go-worker-%d-%d", task, round)), nil, 0o600))
	}
	waits := func(round int) {
		harness.Eventually(t, "a task waits", func() bool {
			_, out, _ := s.CLI(t, "status", "--barriers", "meet")
			return strings.Contains(out, fmt.Sprintf("barrier epoch, round %d: 1 waiting, 1 missing", round))
		})
	}
	let(0, 0)
	waits(1)
	let(1, 0)
	// While one waits, its host's side is killed.
	let(0, 1)
	waits(2)
	require.NoError(t, syscall.Kill(a.Side(), syscall.SIGKILL))
	let(1, 1)
	// And the server.
	let(1, 2)
	waits(3)
	s.KillAndRestart(time.Second)
	let(0, 2)
	result := harness.Result(t, run)
	for i := range 2 {
		out, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out-worker-%d", i)))
		t.Logf("worker-%d:\n%s", i, out)
	}
	require.Equal(t, spec.VerdictSucceeded, result.Verdict, result.Message)
}

// The barriers of a run include the barriers of all its executions: in the list of waiting
// tasks, and later in the list of rounds.
func TestBarriersOfARunThatContinues(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=20"))
	run := f.start(&spec.RunSpec{Barriers: spec.BarriersServer, Tasks: []spec.TaskGroup{group("worker", 2,
		`[ $RANK = 0 ] && echo up > $DIR/up; while [ $RANK = 1 ] && [ ! -e $DIR/go ]; do nap; done; `+harness.Clusterrun(t)+` task barrier epoch`)}})
	f.file("up")
	waits := func() bool {
		code, stdout, _ := f.CLI(t, "status", "--barriers", run.GetID())
		return code == 0 && strings.Contains(stdout, "epoch")
	}
	harness.Eventually(t, "worker-0 waits", waits)
	asked := starter.Get(f.client, run.GetID(), run.GetRunID())
	for len(executionsOf(t, f, run.GetID(), run.GetRunID())) == 1 {
		_, err := starter.Ask(t.Context(), asked, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
		require.NoError(t, err)
	}
	harness.Eventually(t, "it still does", waits)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600))
	result := must.Get(asked.Wait(t.Context()))(t)
	require.Equal(t, spec.VerdictSucceeded, result.Verdict)
	harness.Eventually(t, "the server lists the round as closed", func() bool {
		rounds, err := asked.Rounds(t.Context())
		require.NoError(t, err)
		return slices.ContainsFunc(rounds, func(r starter.Round) bool { return r.Name == "epoch" && !r.Closed.IsZero() })
	})
}
