package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// result runs something to completion and reads its result.
func (l *local) result(args ...string) (r spec.RunResult, stderr string) {
	l.t.Helper()
	_, stdout, stderr := l.run(append([]string{"run", "--json"}, args...)...)
	require.NoError(l.t, json.Unmarshal([]byte(stdout), &r), "%s%s", stdout, stderr)
	return r, stderr
}

// logged returns a task's log. there reports whether the file exists.
func logged(t *testing.T, r spec.RunResult, task int, file string) (text string, there bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Tasks[task].Exit.LogDir, file))
	if os.IsNotExist(err) {
		return "", false
	}
	require.NoError(t, err)
	return string(b), true
}

// TestElastic has the same expectations as torch elastic's multiprocessing tests, and uses their
// IDs.
func TestElastic(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	python := must.Get(exec.LookPath("python3"))(t)

	t.Run("TE-13 TE-23 TE-24 SEED-91 values", func(t *testing.T) {
		r, _ := l.result("--set", "logs.redirects=0", "--tee", "0", "-n", "3", "--", "bash", "-c",
			`[ $RANK = 2 ] || echo "\"hello_$RANK\"" > $CLUSTERRUN_RESULT_FILE`)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict)
		assert.JSONEq(t, `"hello_0"`, string(r.Tasks[0].Value))
		assert.JSONEq(t, `"hello_1"`, string(r.Tasks[1].Value))
		assert.Empty(t, r.Tasks[2].Value, "none")
		_, there := logged(t, r, 0, "stdout.log")
		assert.False(t, there)
	})

	t.Run("TE-14 SEED-92 large values", func(t *testing.T) {
		const entries = 60000
		r, _ := l.result("-n", "4", "--", python, "-c",
			fmt.Sprintf(`import json, os; json.dump([int(os.environ["RANK"])] * %d, open(os.environ["CLUSTERRUN_RESULT_FILE"], "w"))`, entries))
		for rank, task := range r.Tasks {
			value := must.JSON[[]int](t, task.Value)
			require.Len(t, value, entries)
			assert.Equal(t, rank, value[entries-1])
		}
	})

	t.Run("TE-15 TE-20 TE-80 SEED-79 a program raises", func(t *testing.T) {
		dir := l.ok("task", "python", "--dir")
		r, _ := l.result("--env", "PYTHONPATH="+strings.TrimSpace(dir), "-n", "2", "--", python, "-c", `
import clusterrun, os, time
def f():
    if os.environ["RANK"] == "0":
        raise RuntimeError("a failure")
    time.sleep(1000)
clusterrun.main(f)`)
		assert.Equal(t, spec.VerdictFailed, r.Verdict)
		f := r.FirstFailure
		require.NotNil(t, f)
		assert.Equal(t, 0, f.Rank)
		assert.Equal(t, 1, f.ExitCode)
		assert.Empty(t, f.Signal)
		assert.Equal(t, r.Tasks[0].Exit.PID, f.PID)
		assert.Equal(t, filepath.Join(r.Tasks[0].Exit.LogDir, "error.json"), f.ErrorFile)
		assert.Equal(t, "attempt_0/0/error.json", strings.Join(strings.Split(f.ErrorFile, "/")[len(strings.Split(f.ErrorFile, "/"))-3:], "/"))
		assert.Contains(t, f.Message, "RuntimeError: a failure")
		assert.Equal(t, f.Failed(), r.Tasks[0].Exit.ErrorTime)
		assert.False(t, r.Tasks[1].Failed, "one failure")
		for _, task := range r.Tasks {
			assert.Empty(t, task.Value)
			assert.Empty(t, harness.State(task.Exit.PID), "all are gone")
		}
	})

	t.Run("TE-65 TE-74 TE-75 a program that ends well or has nowhere to tell", func(t *testing.T) {
		_, dir, _ := l.run("task", "python", "--dir")
		path := "PYTHONPATH=" + strings.TrimSpace(dir)
		r, _ := l.result("--env", path, "-n", "1", "--", python, "-c", "import clusterrun; clusterrun.main(lambda: None)")
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict)
		_, there := logged(t, r, 0, "error.json")
		assert.False(t, there)
		r, _ = l.result("--env", path, "--log-dir", "/dev/null", "-n", "1", "--", python, "-c", "import clusterrun\n@clusterrun.record\ndef f(): raise ValueError('x')\nf()")
		assert.Equal(t, 1, r.ExitCode)
		assert.Empty(t, r.FirstFailure.ErrorFile)
	})

	t.Run("TE-16 SEED-86 all of a process has to be gone", func(t *testing.T) {
		r, _ := l.result("--env", l.mark, "-n", "2", "--", "bash", "-c", `sleep 10000 & setsid sleep 10000 & disown -a; exit 0`)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Empty(t, l.tasks())
	})

	t.Run("TE-19 D-05 exit code and redirects", func(t *testing.T) {
		r, _ := l.result("--set", "logs.redirects=0:3", "--tee", "0", "-n", "2", "--", "bash", "-c",
			`[ $RANK = 1 ] && exec sleep 10000; echo "exit 138 from 0" >&2; exit 138`)
		f := r.FirstFailure
		require.NotNil(t, f)
		assert.Equal(t, 138, f.ExitCode)
		assert.Empty(t, f.Signal)
		assert.Contains(t, f.Message, "exit 138 from 0", "D-08")
		text, _ := logged(t, r, 0, "stderr.log")
		assert.Equal(t, "exit 138 from 0\n", text)
		text, there := logged(t, r, 0, "stdout.log")
		assert.True(t, there)
		assert.Empty(t, text)
		_, there = logged(t, r, 1, "stdout.log")
		assert.False(t, there)
		killed := r.Tasks[1]
		assert.Equal(t, -15, killed.Exit.ExitCode)
		assert.Equal(t, "SIGTERM", killed.Exit.Signal)
		assert.Equal(t, spec.CauseCollateral, killed.Exit.Cause)
		assert.False(t, killed.Failed)
	})

	t.Run("TE-27 TE-33 TE-34 a signal under every mask", func(t *testing.T) {
		for mask, want := range map[string][2]bool{"0": {}, "1": {true, false}, "2": {false, true}, "3": {true, true}} {
			r, shown := l.result("--set", "logs.redirects="+mask, "--tee", "0", "-n", "1", "--", "bash", "-c", "echo to stdout; echo to stderr >&2; kill -SEGV $$")
			assert.Equal(t, 128+11, r.ExitCode)
			assert.Equal(t, -11, r.FirstFailure.ExitCode)
			assert.Equal(t, "SIGSEGV", r.FirstFailure.Signal)
			for i, file := range []string{"stdout.log", "stderr.log"} {
				text, _ := logged(t, r, 0, file)
				line := "to " + strings.TrimSuffix(file, ".log") + "\n"
				if want[i] {
					assert.Equal(t, line, text, "mask %s", mask)
				}
				// Output that is not redirected goes to the terminal, and its last lines are
				// kept. The report is indented.
				assert.Equal(t, !want[i], strings.Contains("\n"+shown, "\n"+line), "mask %s: %s", mask, file)
			}
		}
	})

	t.Run("TE-52 TE-53 TE-54 whoever writes", func(t *testing.T) {
		r, _ := l.result("--tee", "0", "-n", "1", "--", python, "-c", `
import ctypes, os, sys
libc = ctypes.CDLL(None)
print("python"); print("python error", file=sys.stderr)
libc.puts(b"c"); libc.fflush(None); libc.dprintf(2, b"c error\n")
os.system("echo shell; echo shell error >&2")`)
		out, _ := logged(t, r, 0, "stdout.log")
		assert.ElementsMatch(t, []string{"python", "c", "shell"}, strings.Fields(out))
		errs, _ := logged(t, r, 0, "stderr.log")
		assert.ElementsMatch(t, []string{"python error", "c error", "shell error"}, strings.Split(strings.TrimSpace(errs), "\n"))
	})

	t.Run("refused before anything starts", func(t *testing.T) {
		assert.Contains(t, l.fails(127, "run", "--", "no-such-program"), "command not found", "TE-21")
		file := filepath.Join(l.home, "file")
		require.NoError(t, os.WriteFile(file, nil, 0o644))
		assert.Contains(t, l.fails(2, "run", "--log-dir", file, "true"), "logs.dir: "+file+" is a file", "TE-07 SEED-74")
	})
	t.Run("SEED-75 the log directory is made, and nothing in it is wiped", func(t *testing.T) {
		dir := filepath.Join(l.home, "some", "where")
		for range 2 {
			r, _ := l.result("--log-dir", dir, "--id", "same", "-n", "1", "--", "true")
			assert.Equal(t, spec.VerdictSucceeded, r.Verdict)
		}
		runs := must.Get(filepath.Glob(filepath.Join(dir, "same", "*", "attempt_0", "0")))(t)
		assert.Len(t, runs, 2)
	})
}
