package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// showShare is a script that prints the share of a task.
const showShare = `echo "$CLUSTERRUN_TASK devices=${CUDA_VISIBLE_DEVICES-all} threads=${OMP_NUM_THREADS-} $(grep Cpus_allowed_list: /proc/self/status | tr -d '\t')"`

func shares(stdout string) map[string]string {
	shown := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\[.*\]: *(\w+-\d+) (devices=.*)$`).FindAllStringSubmatch(stdout, -1) {
		shown[m[1]] = m[2]
	}
	return shown
}

func TestSharesOfAHost(t *testing.T) {
	t.Parallel()
	var own unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &own))
	var cpus []int
	for n := range len(own) * 64 {
		if own.IsSet(n) {
			cpus = append(cpus, n)
		}
	}
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	all := allowedHere(t)
	l := newLocal(t)
	// The devices are named here, so the devices of this machine do not matter.
	run := func(visible string, args ...string) (int, map[string]string, string) {
		env := append(harness.Env(l.home), "CUDA_VISIBLE_DEVICES="+visible)
		p := harness.Start(t, l.home, env, append([]string{harness.Clusterrun(t), "run"}, args...)...)
		code := p.ExitCode()
		return code, shares(p.Stdout()), p.Stdout() + p.Stderr()
	}
	const four = "GPU-0,GPU-1,GPU-2,GPU-3"
	bound := func(n int) string { return fmt.Sprintf("threads=1 Cpus_allowed_list:%d", cpus[n]) }
	pair := fmt.Sprintf("%d,%d", cpus[0], cpus[1])

	t.Run("MPR-33 each sees its own", func(t *testing.T) {
		code, got, out := run(four, "--task", "chief=1", "--task", "worker=1", "--devices", "auto", "--cpus", pair, "--", "bash", "-c", showShare)
		require.Zero(t, code, out)
		assert.Equal(t, map[string]string{
			"chief-0": "devices=GPU-0,GPU-2 " + bound(0), "worker-0": "devices=GPU-1,GPU-3 " + bound(1),
		}, got)
	})

	t.Run("MPR-33 by number", func(t *testing.T) {
		if _, err := os.Stat("/dev/nvidia0"); err == nil {
			t.Skip("counts the GPUs of this machine")
		}
		for devices, want := range map[string][2]string{"0,1,2,3": {"0,2", "1,3"}, "0-1": {"0", "1"}, "auto": {"0,2", "1,3"}} {
			code, got, out := run("0,1,2,3", "-n", "2", "--devices", devices, "--", "bash", "-c", showShare)
			require.Zero(t, code, out)
			for i, list := range want {
				assert.Contains(t, got[fmt.Sprintf("worker-%d", i)], "devices="+list+" ")
			}
		}
		p := l.start("run", "-n", "2", "--devices", "auto", "--", "bash", "-c", showShare)
		require.Zero(t, p.ExitCode(), p.Stderr())
		assert.Contains(t, shares(p.Stdout())["worker-1"], "devices=all ")
		p = l.start("run", "-n", "2", "--devices", "0,99", "--", "true")
		assert.Equal(t, 2, p.ExitCode())
		assert.Regexp(t, `^clusterrun: --devices: host \S+ has no GPUs, so no device 0; leave it out, or .*\n$`, p.Stderr())
	})

	t.Run("a worker that is to use none, and what is not bound", func(t *testing.T) {
		code, got, out := run("", "-n", "2", "--devices", "auto", "--", "bash", "-c", showShare)
		require.Zero(t, code, out)
		want := "devices= threads=1 Cpus_allowed_list:" + all
		assert.Equal(t, map[string]string{"worker-0": want, "worker-1": want}, got)
	})

	t.Run("the spec's env wins", func(t *testing.T) {
		code, got, out := run(four, "-n", "2", "--devices", "auto", "--cpus", pair, "--env", "CUDA_VISIBLE_DEVICES=GPU-9", "--env", "OMP_NUM_THREADS=7", "--", "bash", "-c", showShare)
		require.Zero(t, code, out)
		assert.Equal(t, fmt.Sprintf("devices=GPU-9 threads=7 Cpus_allowed_list:%d", cpus[1]), got["worker-1"])
	})

	t.Run("what the host does not have", func(t *testing.T) {
		code, _, out := run(four, "-n", "5", "--devices", "auto", "--cpus", "0-8191", "--", "true")
		assert.Equal(t, 2, code)
		assert.Contains(t, out, "devices: 5 tasks on host ")
		assert.Contains(t, out, "but each needs one; give some types devices: [], or have fewer tasks")
		assert.Regexp(t, `cpus: CPU \d+ cannot be used on host \S+ the host worker may run on `+regexp.QuoteMeta(all), out)
	})
}

// A restart gets the same share. A task added at run time gets the share of a task of its pool,
// too.
func TestSharesOverTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := &spec.RunSpec{
		Tasks:       []spec.TaskGroup{group("worker", 2, `echo "$CUDA_VISIBLE_DEVICES" >> "$DIR/$CLUSTERRUN_TASK.$CLUSTERRUN_RESTART_COUNT"; until [ -e "$DIR/end" ]; do nap; done`)},
		Devices:     spec.Resources{"GPU-0", "GPU-1", "GPU-2"},
		AutoRestart: true,
	}
	run := f.start(s)
	assert.Equal(t, "GPU-0,GPU-2\n", f.file("worker-0.0"))
	assert.Equal(t, "GPU-1\n", f.file("worker-1.0"))
	f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
	assert.Equal(t, "GPU-0,GPU-2\n", f.file("worker-0.1"))
	f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-3", New: true})
	assert.Equal(t, "GPU-1\n", f.file("worker-3.0"))
	touch(t, f, "end")
	assert.Equal(t, spec.VerdictSucceeded, f.result(run).Verdict)
}

func allowedHere(t *testing.T) string {
	t.Helper()
	b := must.Get(os.ReadFile("/proc/thread-self/status"))(t)
	line, _, _ := strings.Cut(after(string(b), "Cpus_allowed_list:"), "\n")
	return strings.TrimSpace(line)
}

// Runs on one host have different GPUs, even after its host worker was killed and the fleet has
// received its GPUs again.
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

// logger writes without end, but not so fast that it fills the disk before anybody looks.
const logger = "while head -c 1M /dev/zero; do sleep 0.01; done"

// A task that would write 100 GB ends its run with the reason, and is not started again.
// Another run on the same host is not affected.
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

// Limits that this host can enforce are enforced; others are refused before anything starts.
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
