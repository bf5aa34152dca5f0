package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	assert.Contains(t, f.OK(t, "status", "--why", same.GetID()), "GPUs 7 not all free on a")
	many := f.start(&spec.RunSpec{GPUsPerTask: new(2), Tasks: []spec.TaskGroup{group("worker", 1, tell)}})
	f.waitsBehind(same, many)

	touch(t, f, "one")
	assert.ElementsMatch(t, []string{`"4"`, `"5"`}, devices(f.result(one), "worker-0", "worker-1"))
	assert.NotContains(t, devices(f.result(many), "worker-0")[0], "7")
	touch(t, f, "two")
	assert.Equal(t, []string{`"7"`}, devices(f.result(two), "worker-0"))
	assert.Equal(t, []string{`"7"`}, devices(f.result(same), "worker-0"))

	assert.Contains(t, f.Fails(t, 1, "validate", "--plan", "-n", "3", "--gpus-per-task", "2", "--", "true"), "host a has room for 2 tasks with their GPUs; 3 are needed")
}

// logger writes without end, but slowly enough not to fill the disk before anyone looks.
const logger = "while head -c 1M /dev/zero; do sleep 0.01; done"

// A task that would write 100 GB fails its run with the reason, and does not restart. Another run
// on the same host is not affected.
func TestALoggerEndsItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	healthy := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{harness.Shell("worker", 1, `until [ -e $DIR/end ]; do nap; done`)}})
	for name, s := range map[string]*spec.RunSpec{
		"one": {AutoRestart: true}, "group": {RestartScope: spec.RestartScopeGroup}, "others go on": {OnFailure: spec.OnFailureContinue},
	} {
		s.Logs = spec.Logs{Quota: "1MiB"}
		s.Tasks = []spec.TaskGroup{harness.Shell("logger", 1, logger), harness.Shell("steady", 1, "echo begun; sleep 1; echo ended")}
		result := f.result(f.start(s))
		require.NotNil(t, result.FirstFailure, name)
		assert.Equal(t, spec.CauseLogQuota, result.FirstFailure.Cause, name)
		assert.Equal(t, "logger-0", result.FirstFailure.Task, name)
		assert.Contains(t, result.Message, "was stopped because the run's output on that host exceeded logs.quota", name)
		assert.Contains(t, result.FirstFailure.Message, "bytes of output on this host, and logs.quota is 1048576", name)
		assert.Zero(t, result.Tasks[0].Restarts+result.Generation, name)
		if s.OnFailure == spec.OnFailureContinue {
			require.NotNil(t, result.Tasks[1].Exit)
			assert.Equal(t, spec.CauseCompleted, result.Tasks[1].Exit.Cause, "the others have the quota for themselves then")
		}
	}
	dropping := f.start(&spec.RunSpec{
		Logs:  spec.Logs{Quota: "64KiB", OnFull: spec.OnFullDrop},
		Tasks: []spec.TaskGroup{harness.Shell("logger", 1, "head -c 300M /dev/zero")},
	})
	result := f.result(dropping)
	assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
	require.NotNil(t, result.Tasks[0].Exit)
	assert.Positive(t, result.Tasks[0].Exit.DroppedBytes)
	assert.Regexp(t, `(?m)^\d.* of the output of logger-0 were dropped \(logs.on_full\), or could not be written to its file$`, f.OK(t, "status", dropping.GetID()))
	log := must.Get(os.ReadFile(filepath.Join(result.Tasks[0].Exit.LogDir, "stdout.log")))(t)
	assert.Less(t, len(log), 66<<10)
	assert.True(t, strings.HasSuffix(string(log), " bytes of this output were dropped\n"))

	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "end"), nil, 0o600))
	assert.Equal(t, spec.VerdictSucceeded, f.result(healthy).Verdict)
}

// Supported limits are enforced; unsupported limits are refused before anything starts.
func TestLimitsOfMemory(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	p := harness.Start(t, l.home, harness.Env(l.home, "CLUSTERRUN_DEVSERVER="+harness.Devserver(t)),
		harness.Clusterrun(t), "run", "--limit-memory", "64MiB", "--", "sh", "-c", "touch started; head -c 1G /dev/zero | tail")
	code := p.ExitCode()
	if strings.Contains(p.Stderr(), "cannot enforce it") {
		assert.Equal(t, 2, code)
		assert.Contains(t, p.Stderr(), "invalid run spec: limits.memory: host ")
		assert.NoFileExists(t, filepath.Join(l.home, "started"))
		return
	}
	assert.Contains(t, p.Stderr(), "reached its memory limit and was killed")
	assert.Contains(t, p.Stderr(), "limits.memory is 67108864 bytes")
}
