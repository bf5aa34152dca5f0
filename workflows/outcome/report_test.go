package outcome

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestExit_MPR16_MPR17_SEED21(t *testing.T) {
	origin := func(code int) spec.Exit { return spec.Exit{ExitCode: code, Cause: spec.CauseOrigin, PID: 7} }
	assert.Equal(t, "Subprocess worker-0 exited with exit code 10", ofFailure(spec.Failure{Task: "worker-0", Exit: origin(10)}))
	// A signal is an error, and named.
	assert.Equal(t, "Subprocess worker-0 exited with exit code 139 (SIGSEGV)", ofFailure(spec.Failure{Task: "worker-0", Exit: origin(-11)}))
	assert.Equal(t, "Subprocess chief-0 exited with exit code 163 (signal 35)", ofFailure(spec.Failure{Task: "chief-0", Exit: origin(-35)}))
	bad := origin(0)
	bad.Message = "result file /r is not one JSON value"
	assert.Equal(t, "Subprocess worker-0 exited with exit code 0, but what it returned cannot be used: result file /r is not one JSON value", ofFailure(spec.Failure{Task: "worker-0", Exit: bad}))
	oom := origin(-9)
	oom.Cause = spec.CauseOOM
	assert.Equal(t, "worker-0 reached its memory limit and was killed", ofFailure(spec.Failure{Task: "worker-0", Exit: oom}))
}

func TestSentenceOfLimits_SEED19_D03(t *testing.T) {
	limit := spec.DurationOf(90 * time.Second)
	r := &spec.RunResult{Verdict: spec.VerdictTimedOut, EndedBy: spec.EndedByTimeout, Limit: limit}
	assert.Equal(t, "One or more subprocesses timed out, where timeout was set to 90s. Please change the `timeout` of the run spec if it should be adjusted.", Sentence(r))
	r.Verdict, r.EndedBy, r.Limit = spec.VerdictFailed, spec.EndedByMaxRunTime, spec.DurationOf(1500*time.Millisecond)
	assert.Contains(t, Sentence(r), "`max_run_time`, which was set to 1.5s.")
}

func TestStragglers_SEED61_CO06(t *testing.T) {
	r := &spec.RunResult{Verdict: spec.VerdictTimedOut, EndedBy: spec.EndedByTogether, Stragglers: []string{"worker-1", "ps-0"}}
	assert.Equal(t, "Coordinator stopped with tasks still running: worker-1 ps-0", Sentence(r))
}

// failedRun returns a run that worker-1's failure ended. Its peers in also failed as well, and the
// rest were stopped.
func failedRun(tasks int, also ...int) *spec.RunResult {
	at := time.Date(2026, 11, 25, 10, 13, 4, 235e6, time.UTC)
	exit := func(code int, cause spec.Cause, later time.Duration) *spec.Exit {
		return &spec.Exit{ExitCode: code, Cause: cause, PID: 8788, Ended: at.Add(later), BootNanos: int64(time.Hour + later), LogDir: "/logs/of/worker"}
	}
	r := &spec.RunResult{Verdict: spec.VerdictFailed, ExitCode: 2, EndedBy: spec.EndedByFailure}
	for i := range tasks {
		t := spec.TaskResult{Name: spec.TaskName("worker", i), Rank: i, Host: "vm", Exit: exit(-15, spec.CauseCollateral, time.Second)}
		r.Tasks = append(r.Tasks, t)
	}
	r.Tasks[1].Exit, r.Tasks[1].Failed = exit(2, spec.CauseOrigin, 0), true
	r.Tasks[1].Exit.Message = "python3: can't open file 'nosuch.py'\n"
	for _, i := range also {
		r.Tasks[i].Exit, r.Tasks[i].Failed = exit(2, spec.CauseOrigin, 3*time.Millisecond), true
	}
	r.FirstFailure = &spec.Failure{Task: "worker-1", Rank: 1, Host: "vm", Exit: *r.Tasks[1].Exit}
	r.Message = Sentence(r)
	return r
}

func text(r *spec.RunResult, o Options) string {
	return strings.Join(append([]string{Headline("iris-1", r, func(s string) string { return s })}, Lines(r, o)...), "\n")
}

// The report of one failure among many has five lines, without repetition.
func TestReportOfOneFailureAmongMany_SEED89_TE01(t *testing.T) {
	here := Options{Run: "iris-1", Zone: time.FixedZone("CET", 3600)}
	assert.Equal(t, `run iris-1 failed: Subprocess worker-1 exited with exit code 2
Root cause: worker-1 on vm (rank 1, pid 8788), at 2026-11-25 11:13:04.235 CET
    python3: can't open file 'nosuch.py'
3 were stopped because of it: worker-0, worker-2, worker-3
Logs: clusterrun logs iris-1 worker-1`, text(failedRun(4), here))
	assert.Equal(t, `run iris-1 failed: Subprocess worker-1 exited with exit code 2
Root cause: worker-1 on vm (rank 1, pid 8788), at 2026-11-25 10:13:04.235 UTC
    python3: can't open file 'nosuch.py'
1 other failed after it: worker-0 on vm (exit code 2, 3ms later)
Logs: /logs/of/worker`, text(failedRun(2, 0), Options{}))
}

// A task that exits with its own exit code while it is being stopped has also failed.
func TestReportNamesTheErrorOfAGPU(t *testing.T) {
	r := failedRun(2)
	r.FirstFailure.Xid, r.FirstFailure.GPUError = 31, "Xid 31 of GPU 0000:00:06 (pid 8788, python3): MMU Fault"
	assert.Contains(t, Lines(r, Options{}), "The GPU driver reported Xid 31 of GPU 0000:00:06 (pid 8788, python3): MMU Fault")
}

func TestReportNamesFailuresOfStoppedTasks(t *testing.T) {
	r := failedRun(4)
	r.Tasks[0].Exit.ExitCode, r.Tasks[2].Exit.ExitCode = 1, 143
	assert.Contains(t, text(r, Options{}), "\n1 failed because of it: worker-0 (exit code 1)\n2 were stopped because of it: worker-2, worker-3\n")
	r.EndedBy = spec.EndedByTimeout
	assert.Contains(t, text(r, Options{}), "\n3 were stopped when the timeout passed: worker-0, worker-2, worker-3\n")
}

// A task is listed even if its name is a prefix of another name.
func TestReportNamesAllThatFailed(t *testing.T) {
	got := text(failedRun(14, 10, 11, 12), Options{Run: "iris-1"})
	for _, i := range []int{10, 11, 12} {
		assert.Contains(t, got, fmt.Sprintf("worker-%d on vm (exit code 2", i))
	}
	r := failedRun(14, 0, 2, 3, 4, 5)
	assert.Contains(t, text(r, Options{}), "5 others failed after it: worker-0 on vm (exit code 2, 3ms later), ")
	assert.Contains(t, text(r, Options{}), ", worker-5 (exit code 2)\n", "only the first have their host and time")
	assert.Contains(t, text(failedRun(14, 0, 2, 3, 4, 5, 6, 7, 8, 10), Options{}), ", worker-5 to worker-8, worker-10 (each exit code 2)\n", "they have the same fate")
}

func TestHeadline(t *testing.T) {
	mark := func(s string) string { return "*" + s + "*" }
	r := failedRun(2)
	r.ExitCode = 1
	assert.Equal(t, "run x *failed* (exit code 1): Subprocess worker-1 exited with exit code 2", Headline("x", r, mark), "as torchrun exits")
	assert.Equal(t, "run x *succeeded*, after 1 restart", Headline("x", &spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{{Restarts: 1}}}, mark))
	assert.Equal(t, "run x *cancelled* (exit code 130): lunch", Headline("x", &spec.RunResult{Verdict: spec.VerdictCancelled, ExitCode: 130, Reason: "lunch", Message: "The run was cancelled: lunch"}, mark))
	assert.Equal(t, "run x *timed out* (exit code 124): why", Headline("x", &spec.RunResult{Verdict: spec.VerdictTimedOut, ExitCode: 124, Message: "why"}, mark))
}

// The report of a successful run names tasks with processes that the kernel killed, but not tasks
// that were stopped.
func TestLinesOutOfMemory(t *testing.T) {
	of := func(name, scope string, cause spec.Cause) spec.TaskResult {
		return spec.TaskResult{Name: name, Host: "a", Failed: cause == spec.CauseOrigin, Exit: &spec.Exit{Cause: cause, OOMKills: 1, OOMScope: scope}}
	}
	r := &spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{
		of("worker-0", "cgroup", spec.CauseCompleted), of("worker-1", "cgroup", spec.CauseCompleted), of("worker-2", "task", spec.CauseCompleted), of("worker-3", "cgroup", spec.CauseCollateral), {Name: "worker-4"},
	}}
	shared := "the kernel killed 1 process to free memory while it ran, in the cgroup of the host worker"
	assert.Equal(t, []string{
		"Out of memory (worker-0 on a, worker-1 on a): " + shared,
		"Out of memory (worker-2 on a): the kernel killed 1 process of the task to free memory",
	}, Lines(r, Options{}))
	r = &spec.RunResult{Verdict: spec.VerdictFailed, Tasks: []spec.TaskResult{of("worker-0", "cgroup", spec.CauseOrigin)}}
	r.FirstFailure = &spec.Failure{Task: "worker-0", Exit: *r.Tasks[0].Exit}
	assert.Contains(t, Lines(r, Options{}), "Out of memory (worker-0 on a): "+shared)
	r.FirstFailure.Message = "likely out of memory: " + shared
	assert.NotContains(t, Lines(r, Options{}), "Out of memory (worker-0 on a): "+shared, "it has been said")
}

func TestLinesOfSharedMemory(t *testing.T) {
	r := &spec.RunResult{Verdict: spec.VerdictSucceeded, SharedMemory: []spec.SharedMemory{{Host: "a", Left: 50 << 20, Files: 2, Size: 64 << 20}}}
	assert.Equal(t, []string{"/dev/shm on a: 50 of 64 MiB are in 2 files left by earlier processes of the run (see clean_shm)"}, Lines(r, Options{}))
}

func TestLinesOfASuccessfulStop(t *testing.T) {
	r := &spec.RunResult{Verdict: spec.VerdictSucceeded, Stopping: &spec.Stopping{Stop: true, Reason: "enough"}, Stragglers: []string{"worker-0"}, IgnoredStragglers: true}
	assert.Equal(t, []string{"An operator asked all tasks to stop: enough", "Coordinator stopped with tasks still running: worker-0"}, Lines(r, Options{}))
}
