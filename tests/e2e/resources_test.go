package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Runs on one host get different GPUs, even after its host worker was killed and its GPUs were
// reported to the fleet again.
func TestRunsDoNotShareAGPU(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	host := f.StartWorkerWith(t, []string{"CUDA_VISIBLE_DEVICES=4,5,6,7"}, "--host-name", "a", "--gpus", "4")
	harness.Eventually(t, "both hosts are there", func() bool { return len(f.hosts()) == 2 })
	f.worker.Kill(syscall.SIGTERM)
	f.worker.ExitCode()
	harness.Eventually(t, "the host is there", func() bool { return len(f.hosts()) == 1 })
	tell := `printf '"%s"' "$CUDA_VISIBLE_DEVICES" > "$CLUSTERRUN_RESULT_FILE"; `

	devices := func(run spec.RunResult, tasks ...string) (list []string) {
		require.Equal(t, spec.VerdictSucceeded, run.Verdict, run.Message)
		for _, name := range tasks {
			list = append(list, string(task(run, name).Value))
		}
		return list
	}
	one := f.start(&spec.RunSpec{GPUsPerTask: new(1), Tasks: []spec.TaskGroup{group("worker", 2, tell+waitFor("one"))}})
	f.file("one-1")
	side := host.Side()
	require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
	harness.Eventually(t, "another side serves the host", func() bool { return host.Side() != side })
	two := f.start(&spec.RunSpec{Devices: spec.Resources{"7"}, Tasks: []spec.TaskGroup{group("worker", 1, tell+waitFor("two"))}})
	f.file("two-0")
	harness.Eventually(t, "three GPUs are in use", func() bool { return f.hosts()["a"].UsedGPUs == 3 })
	same := f.start(&spec.RunSpec{Devices: spec.Resources{"7"}, Tasks: []spec.TaskGroup{group("worker", 1, tell)}})
	f.waitsBehind(same)
	assert.Contains(t, f.OK(t, "status", "--why", same.GetID()), "GPUs 7 are not all free on a")
	many := f.start(&spec.RunSpec{GPUsPerTask: new(2), Tasks: []spec.TaskGroup{group("worker", 1, tell)}})
	f.waitsBehind(same, many)

	touch(t, f, "one")
	assert.ElementsMatch(t, []string{`"4"`, `"5"`}, devices(f.result(one), "worker-0", "worker-1"))
	assert.NotContains(t, devices(f.result(many), "worker-0")[0], "7")
	touch(t, f, "two")
	assert.Equal(t, []string{`"7"`}, devices(f.result(two), "worker-0"))
	assert.Equal(t, []string{`"7"`}, devices(f.result(same), "worker-0"))

	assert.Contains(t, f.Fails(t, 1, "validate", "--plan", "-n", "3", "--gpus-per-task", "2", "--", "true"), "host a has capacity for 2 tasks with their GPUs; 3 are needed")
}
