package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/harness"
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
	b, err := os.ReadFile("/proc/thread-self/status")
	require.NoError(t, err)
	line, _, _ := strings.Cut(after(string(b), "Cpus_allowed_list:"), "\n")
	return strings.TrimSpace(line)
}
