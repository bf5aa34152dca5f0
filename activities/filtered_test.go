package activities

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// filtering is a host with a run of two tasks and filtered lines.
func filtering(t *testing.T, change func(*plan)) (h *Host, p *plan, runDir string) {
	t.Helper()
	h = must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Log: zap.NewNop()}))(t)
	p = planOf("chief", "worker")
	p.Run = runkey.Run{WorkflowID: "iris", RunID: "1"}
	p.Tasks, p.LogRoot, p.Cluster.Hosts = []string{"chief-0", "worker-0"}, t.TempDir(), 1
	p.Spec.Logs.DuplicateStdoutFilters = []string{"loss"}
	if change != nil {
		change(p)
	}
	p = must.Get(h.plans.update(p.Run, func(*plan) (*plan, error) { return p, nil }))(t)
	return h, p, tasklog.RunDir(p.LogRoot, "iris", "1")
}

func write(t *testing.T, runDir string, attempt, rank int, text string) {
	t.Helper()
	dir := tasklog.ProcessDir(runDir, attempt, rank)
	require.NoError(t, tasklog.MakeDir(dir))
	f := must.Get(os.OpenFile(filepath.Join(dir, tasklog.StdoutFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
	_, err := f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func filtered(t *testing.T, runDir string, attempt string) string {
	t.Helper()
	return must.Read(t, runDir, "attempt_"+attempt, "filtered_stdout.log")
}

// TE-26, TE-29: the host's tasks share one file, with their prefixes, which is written when the run
// is released.
func TestFilteredLines_TE26_TE29(t *testing.T) {
	h, p, dir := filtering(t, func(p *plan) { p.Spec.Logs.Prefix = new("{{.Type}}/{{.Rank}}#{{.Attempt}} ") })
	write(t, dir, 0, 0, "loss 1\nnoise\n")
	write(t, dir, 0, 1, "loss 2\n")
	write(t, dir, 1, 1, "loss 3")
	h.filterLines(t.Context(), p)
	assert.Equal(t, "chief/0#0 loss 1\nworker/1#0 loss 2\n", filtered(t, dir, "0"))
	assert.Equal(t, "worker/1#1 loss 3\n", filtered(t, dir, "1"))
}

func TestNothingIsFiltered(t *testing.T) {
	for name, change := range map[string]func(*plan){
		"no filters":         func(p *plan) { p.Spec.Logs.DuplicateStdoutFilters = nil },
		"no logs":            func(p *plan) { p.LogRoot = spec.NullDir },
		"a plan of old days": func(p *plan) { p.Spec = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h, p, dir := filtering(t, change)
			if name != "no logs" {
				write(t, dir, 0, 0, "loss 1\n")
			}
			h.filterLines(t.Context(), p)
			assert.NoFileExists(t, filepath.Join(dir, "attempt_0", "filtered_stdout.log"))
		})
	}
}

// Hosts that may share a log directory each write their own file, for their own tasks.
func TestFilteredLinesOfHostsWithOneDirectory(t *testing.T) {
	h, p, dir := filtering(t, func(p *plan) {
		p.Cluster.Hosts, p.Spec.Logs.Dir, p.Tasks = 2, p.LogRoot, []string{"worker-0"}
	})
	write(t, dir, 0, 0, "loss of another host\n")
	write(t, dir, 0, 1, "loss\n")
	h.filterLines(t.Context(), p)
	assert.Equal(t, "[worker-0]:    loss\n", must.Read(t, dir, "attempt_0", "filtered_stdout.host-a.log"))
}

// A run gets the final location of its logs, even if the host writes them to another directory.
func TestWhereCopiedLogsLie(t *testing.T) {
	for name, c := range map[string]struct{ copiedTo, inSpec, root, told string }{
		"on the host":                       {"", "", "/host/logs", "/host/logs/run/attempt_0/1"},
		"on the host, where the spec says":  {"", "/shared", "/shared", "/shared/run/attempt_0/1"},
		"copied":                            {"/owner/logs", "", "/host/logs", "/owner/logs/run/attempt_0/1"},
		"copied to where the spec says":     {"/owner/logs", "/mine", "/host/logs", "/mine/run/attempt_0/1"},
		"shown, and kept nowhere by a spec": {"/owner/logs", spec.NullDir, "/host/logs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := assemble(&core{Config: Config{LogRoot: "/host/logs", LogsCopiedTo: c.copiedTo}})
			s := &spec.RunSpec{Logs: spec.Logs{Dir: c.inSpec}}
			assert.Equal(t, c.root, h.ships.logRoot(s))
			p := &plan{Spec: s, LogRoot: h.ships.logRoot(s)}
			assert.Equal(t, c.told, h.told(p, p.LogRoot+"/run/attempt_0/1"))
		})
	}
	h := assemble(&core{Config: Config{LogsCopiedTo: "/owner/logs"}})
	assert.Equal(t, "/elsewhere/x", h.told(nil, "/elsewhere/x"), "of a run without a plan nothing is known")
}

// An address that is passed to another host must be reachable from it.
func TestAddressesForOtherHosts(t *testing.T) {
	plain, reached := assemble(&core{Config: Config{Name: "a"}}), assemble(&core{Config: Config{Name: "a", Advertise: "10.0.0.2"}})
	for _, c := range []struct {
		pinned         string
		alone          bool
		plain, reached string
	}{
		{"", true, "127.0.0.1:7", "127.0.0.1:7"},
		{"", false, "a:7", "10.0.0.2:7"},
		{"a", false, "a:7", "10.0.0.2:7"},
		{"a", true, "a:7", "10.0.0.2:7"},
		{"localhost", true, "localhost:7", "localhost:7"},
		{"localhost", false, "a:7", "10.0.0.2:7"},
		{"127.0.0.1", false, "a:7", "10.0.0.2:7"},
		{"::1", false, "a:7", "10.0.0.2:7"},
	} {
		assert.Equal(t, c.plain, plain.reservations.address(c.pinned, 7, c.alone), "%+v", c)
		assert.Equal(t, c.reached, reached.reservations.address(c.pinned, 7, c.alone), "%+v", c)
	}
}

// written returns process n of a task that has written this output.
func written(t *testing.T, root, task string, n int, stdout, stderr string) supervisor.Process {
	t.Helper()
	dir := filepath.Join(root, fmt.Sprintf("attempt_%d", n), task)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{tasklog.StdoutFile: stdout, tasklog.StderrFile: stderr} {
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	return supervisor.Process{Key: runkey.Task{Task: task}, Number: n, LogDir: dir}
}

func planOf(types ...string) *plan {
	p := &plan{Spec: (&spec.RunSpec{}).WithDefaults()}
	for rank, typ := range types {
		p.Cluster.Members = append(p.Cluster.Members, hostapi.Member{Type: typ, Rank: rank, LocalRank: rank})
	}
	return p
}

// SEED-05: the lines have their task's prefix, and include the lines of all its attempts.
func TestLastOutput_MPR05_SEED05(t *testing.T) {
	dir := t.TempDir()
	out := lastOutput(planOf("chief", "worker"), []supervisor.Process{
		written(t, dir, "chief-0", 0, "a\nb", "warning\n"),
		written(t, dir, "worker-0", 0, "", "failed\n"), // stdout was not redirected
		written(t, dir, "worker-0", 1, "well\n", ""),
		{Key: runkey.Task{Task: "worker-0"}, Number: 2, LogDir: filepath.Join(dir, "missing")},
	})
	assert.Equal(t, []string{
		"[chief-0]:     a", "[chief-0]:     b", "[chief-0]:     warning",
		"[worker-0]:    failed", "[worker-0]:    well",
	}, out)
}

// A run that keeps no files does not return output. A file in the host worker's own directory is
// not its output.
func TestLastOutputWithoutFiles_SEED76(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(tasklog.StdoutFile, []byte("not ours\n"), 0o600))
	assert.Empty(t, lastOutput(planOf("worker"), []supervisor.Process{{Key: runkey.Task{Task: "worker-0"}}}))
	assert.Empty(t, lastOutput(planOf("worker"), nil))
}

func size(lines []string) (n int) {
	for _, l := range lines {
		n += len(l)
	}
	return n
}

// If there is too much output, the end of each task's output has priority.
func TestLastOutputIsBounded(t *testing.T) {
	dir := t.TempDir()
	line := strings.Repeat("x", 999) + "\n"
	var processes []supervisor.Process
	for n := range 20 {
		processes = append(processes, written(t, dir, "chief-0", n, strings.Repeat(line, 99)+fmt.Sprintf("end of %d\n", n), ""))
	}
	processes = append(processes, written(t, dir, "worker-0", 0, strings.Repeat(line, 99)+"end of worker\n", "small\n"))
	out := lastOutput(planOf("chief", "worker"), processes)
	assert.LessOrEqual(t, size(out), maxOutput)
	assert.Greater(t, size(out), maxOutput/2)
	for line, want := range map[string]bool{
		"[chief-0]:     end of 19": true, "[chief-0]:     end of 18": true, "[chief-0]:     end of 0": false,
		"[worker-0]:    end of worker": true, "[worker-0]:    small": true,
	} {
		assert.Equal(t, want, slices.Contains(out, line), line)
	}
	assert.Less(t, strings.Index(strings.Join(out, "\n"), "end of 18"), strings.Index(strings.Join(out, "\n"), "end of 19"))

	// Prefixes count towards the limit: here a thousand tasks wrote many short lines.
	processes = processes[:0]
	var types []string
	for i := range 1000 {
		types = append(types, fmt.Sprintf("t%d", i))
		processes = append(processes, written(t, dir, fmt.Sprintf("t%d-0", i), 0, strings.Repeat("1\n", 99)+"last\n", ""))
	}
	out = lastOutput(planOf(types...), processes)
	assert.LessOrEqual(t, size(out), maxOutput)
	for _, i := range []int{0, 500, 999} {
		last := fmt.Sprintf("%-14s last", fmt.Sprintf("[t%d-0]:", i))
		assert.True(t, slices.Contains(out, last), last)
	}
}

// failures are errors as printed by programs in several languages.
var failures = []string{
	"Traceback (most recent call last):\n  File \"/w/train.py\", line 88, in <module>\n    load()\nValueError: shard 3 is corrupt\n",
	"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/train.py\", line 88, in <module>\n[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n",
	"panic: no shard 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:5 +0x1d\n",
	"terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad mesh\n",
	"thread 'main' panicked at src/main.rs:4:5:\nno shard 3\n",
	"Exception in thread \"main\" java.lang.IllegalStateException: no shard\n\tat app.Main.load(Main.java:12)\n",
	"At line 12 of file ocean.f90 (unit = 10)\nFortran runtime error: End of file\n",
	"double free or corruption (out)\n",
	"==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x60\n    #0 0x4 in main /src/a.c:7:3\nSUMMARY: AddressSanitizer: heap-use-after-free\n==7==ABORTING\n",
}

// effects are other processes' outputs when their peer is gone.
var effects = []string{
	"Traceback (most recent call last):\n  File \"/w/train.py\", line 99, in <module>\n    all_reduce(x)\nRuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:4711\n",
	"gpu-1:77:99 [0] NCCL WARN Connection closed by remote peer gpu-2<4711>\nTraceback (most recent call last):\n  File \"/w/train.py\", line 99, in <module>\nRuntimeError: step 7 failed\n",
	"Traceback (most recent call last):\n  File \"a.py\", line 2, in f\nConnectionResetError: [Errno 104] Connection reset by peer\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 5, in <module>\nRuntimeError: training failed\n",
	"panic: read tcp 10.0.0.2:4711: connection reset by peer\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:9 +0x1d\n",
	"[rank1]:[E1121 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\nterminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 1] watchdog\n",
}

const logged = "2026-11-21 ERROR root: shard 2 is skipped\nTraceback (most recent call last):\n  File \"/w/train.py\", line 41, in <module>\nKeyError: 'shard'\nstep 12\n"

// One process fails and cleans up for up to three seconds, while the other processes lose their
// peer and exit first. Its error is the root cause in each of these runs, whether it exits unasked
// or must be stopped.
func TestTheProcessThatOthersLostIsNamed(t *testing.T) {
	for seed := range 300 {
		rng := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // not a secret
		tasks := 2 + rng.IntN(6)
		culprit := rng.IntN(tasks)
		cleanup := time.Duration(rng.IntN(3000)) * time.Millisecond
		began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		failed := began.Add(20 * time.Second)
		s := (&spec.RunSpec{Command: []string{"true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: &tasks}}}).WithDefaults()
		m := lifecycle.New(s, s.TaskList())
		m.Step(lifecycle.Begin{})
		hosts := map[string]string{}
		// exit returns the exit of a process that wrote text to stderr and then more to stdout.
		exit := func(rank int, text string, printed, ended time.Time, noise int, end supervisor.Exit) *spec.Exit {
			hosts[fmt.Sprintf("worker-%d", rank)] = "host-a"
			dir := filepath.Join(t.TempDir(), fmt.Sprint(seed, "-", rank))
			require.NoError(t, os.MkdirAll(dir, 0o755))
			for name, output := range map[string]string{
				tasklog.StderrFile: strings.Repeat("step\n", 100) + text,
				tasklog.StdoutFile: strings.Repeat("wandb: waiting\n", noise),
			} {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte(output), 0o600))
				require.NoError(t, os.Chtimes(path, printed, printed))
			}
			end.Ended, end.BootNanos = ended, ended.Sub(began).Nanoseconds()
			e, _ := describeExit("host-a", supervisor.Process{PID: 7, LogDir: dir, Started: began, Exit: &end}, false)
			return &e
		}
		victims := 0
		for _, rank := range rng.Perm(tasks) {
			if rank == culprit {
				continue
			}
			text := effects[rng.IntN(len(effects))]
			if rng.IntN(3) == 0 {
				text = logged + text
			}
			at := failed.Add(time.Duration(20+rng.IntN(400)) * time.Millisecond)
			if victims++; victims > 1 && rng.IntN(2) == 0 {
				// It was stopped before it noticed.
				m.Step(lifecycle.TaskEnded{Task: fmt.Sprintf("worker-%d", rank), Host: "host-a", Exit: exit(rank, logged, began, failed.Add(time.Second), 0, supervisor.Exit{Code: -15, Reason: supervisor.ReasonCollateral})})
				continue
			}
			m.Step(lifecycle.TaskEnded{Task: fmt.Sprintf("worker-%d", rank), Host: "host-a", Exit: exit(rank, text, at, at, 0, supervisor.Exit{Code: 1})})
		}
		end := supervisor.Exit{Code: 1}
		if cleanup > time.Duration(spec.DefaultErrorGrace) {
			end = supervisor.Exit{Code: -15, Reason: supervisor.ReasonCollateral, Failed: true}
		}
		text := failures[rng.IntN(len(failures))]
		name := fmt.Sprintf("worker-%d", culprit)
		m.Step(lifecycle.TaskEnded{Task: name, Host: "host-a", Exit: exit(culprit, text, failed, failed.Add(cleanup+500*time.Millisecond), 30, end)})
		var result *spec.RunResult
		for _, a := range m.Step(lifecycle.Released{Hosts: hosts}) {
			if f, ok := a.(lifecycle.Finish); ok {
				result = &f.Result
			}
		}
		require.NotNil(t, result, "seed %d", seed)
		require.NotNil(t, result.FirstFailure, "seed %d", seed)
		require.Equal(t, name, result.FirstFailure.Task, "seed %d", seed)
		require.Contains(t, strings.Join(outcome.Lines(result, outcome.Options{}), "\n"), "First error: "+name, "seed %d", seed)
	}
}

// A process that shows an error before it is stopped gets stop.error_grace; one that has only
// logged an error does not.
func TestShowsError(t *testing.T) {
	for text, want := range map[string]bool{"": false, "step 1\n": false, failures[0]: true, effects[0]: true, logged: false} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, tasklog.StderrFile), []byte(text), 0o600))
		l := &taskLease{plan: &plan{}}
		require.Equal(t, want, l.showsError(supervisor.Process{LogDir: dir}), "%q", text)
	}
}
