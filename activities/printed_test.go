package activities

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// failures are errors as programs of several languages print them.
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

// effects are the outputs of other processes when their peer is gone.
var effects = []string{
	"Traceback (most recent call last):\n  File \"/w/train.py\", line 99, in <module>\n    all_reduce(x)\nRuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:4711\n",
	"gpu-1:77:99 [0] NCCL WARN Connection closed by remote peer gpu-2<4711>\nTraceback (most recent call last):\n  File \"/w/train.py\", line 99, in <module>\nRuntimeError: step 7 failed\n",
	"Traceback (most recent call last):\n  File \"a.py\", line 2, in f\nConnectionResetError: [Errno 104] Connection reset by peer\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 5, in <module>\nRuntimeError: training failed\n",
	"panic: read tcp 10.0.0.2:4711: connection reset by peer\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:9 +0x1d\n",
	"[rank1]:[E1121 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\nterminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 1] watchdog\n",
}

const logged = "2026-11-21 ERROR root: shard 2 is skipped\nTraceback (most recent call last):\n  File \"/w/train.py\", line 41, in <module>\nKeyError: 'shard'\nstep 12\n"

// One process fails and cleans up for up to three seconds, while the others lose their peer and
// end first. Its error is the root cause in each of these runs, whether it ends by itself or
// must be stopped.
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
			e, _ := describeExit("host-a", supervisor.Process{PID: 7, LogDir: dir, Started: began, Exit: &end}, false, "")
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
