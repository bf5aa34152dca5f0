package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// runIn is run with variables of the shell it is started from.
func (l *local) runIn(env []string, args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	p := harness.Start(l.t, l.home, harness.Env(l.home, env...), append([]string{harness.Clusterrun(l.t)}, args...)...)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}

func linesWith(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

func TestLogs(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("run", "--id", "iris", "--auto-restart", "--max-restarts", "3", "--log-dir", l.home+"/elsewhere",
		"--task", "worker=2", "--task", "ps=1", "--", "bash", "-c",
		`echo out $CLUSTERRUN_TASK; echo err $CLUSTERRUN_TASK >&2; [ $CLUSTERRUN_TASK != worker-1 ] || [ $CLUSTERRUN_RESTART_COUNT = 2 ] || exit 1; printf unfinished`)
	require.Zero(t, code, stderr)
	logs := func(args ...string) (stdout, stderr []string) {
		t.Helper()
		out, errs := l.succeeds(append([]string{"logs", "iris"}, args...)...)
		return linesWith(out), linesWith(errs)
	}

	t.Run("everything", func(t *testing.T) {
		out, errs := logs()
		assert.Len(t, out, 5+3)
		assert.Len(t, errs, 5)
	})
	t.Run("a task and a stream", func(t *testing.T) {
		out, errs := logs("worker-0", "--stderr")
		assert.Empty(t, out)
		assert.Equal(t, []string{"[worker-0]:    err worker-0"}, errs)
	})
	t.Run("a type", func(t *testing.T) {
		out, errs := logs("ps")
		assert.Equal(t, []string{"[ps-0]:        out ps-0", "[ps-0]:        unfinished"}, out)
		assert.Equal(t, []string{"[ps-0]:        err ps-0"}, errs)
	})
	t.Run("attempts", func(t *testing.T) {
		out, _ := logs("--attempt", "1")
		assert.Equal(t, []string{"[worker-1]:    out worker-1"}, out)
		out, _ = logs("--attempt", "last", "worker")
		assert.ElementsMatch(t, []string{
			"[worker-0]:    out worker-0", "[worker-0]:    unfinished", "[worker-1]:    out worker-1", "[worker-1]:    unfinished",
		}, out)
	})
	t.Run("since", func(t *testing.T) {
		out, errs := logs("--since", "1h")
		assert.Len(t, append(out, errs...), 13)
		out, errs = logs("--since", "0s")
		assert.Empty(t, append(out, errs...))
		out, errs = logs("--since", time.Now().Format(time.RFC3339Nano))
		assert.Empty(t, append(out, errs...))
	})
	t.Run("json", func(t *testing.T) {
		out, errs := logs("--json", "worker-1", "--attempt", "0", "--attempt", "2")
		assert.Empty(t, errs)
		type line struct {
			Task    string
			Attempt int
			Stream  string
			Line    string
		}
		var got []line
		for _, text := range out {
			one := must.JSON[line](t, text)
			got = append(got, one)
		}
		assert.ElementsMatch(t, []line{
			{"worker-1", 0, "stdout", "out worker-1"}, {"worker-1", 0, "stderr", "err worker-1"},
			{"worker-1", 2, "stdout", "out worker-1"}, {"worker-1", 2, "stdout", "unfinished"}, {"worker-1", 2, "stderr", "err worker-1"},
		}, got)
	})
	t.Run("mistakes", func(t *testing.T) {
		for want, args := range map[string][]string{
			"no task, type, rank or host evaluator": {"evaluator"},
			"attempts [0 1 2]":                      {"--attempt", "7"},
			"or last":                               {"--attempt", "first"},
			"how long ago":                          {"--since", "yesterday"},
		} {
			assert.Contains(t, l.fails(2, append([]string{"logs", "iris"}, args...)...), want)
		}
	})
}

// Logs can begin at a time, by the notes of the host's heartbeats; and a run can be followed
// before it has written anything.
func TestLogsOfALivingRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Logs: spec.Logs{Dir: f.dir + "/logs"}, Tasks: []spec.TaskGroup{group("worker", 1,
		`echo one; until [ -e $DIR/go ]; do nap; done; echo two; until [ -e $DIR/end ]; do nap; done`)}})
	follow := f.StartCLI(t, "logs", "-f", run.GetID())
	harness.Eventually(t, "the times are noted", func() bool {
		files, _ := filepath.Glob(filepath.Join(f.dir, "logs", "*", "*", "attempt_0", "0", "times"))
		return len(files) == 1
	})
	since := time.Now().Format(time.RFC3339Nano)
	touch(t, f, "go")
	harness.Eventually(t, "the second line is followed", func() bool {
		return follow.Stdout() == "[worker-0]:    one\n[worker-0]:    two\n"
	})
	assert.Equal(t, "[worker-0]:    two\n", f.OK(t, "logs", run.GetID(), "--since", since))
	touch(t, f, "end")
	assert.Zero(t, follow.ExitCode(), follow.Stderr())
	f.result(run)
	_, stdout, _ := f.CLI(t, "logs", run.GetID(), "--since", since)
	assert.Equal(t, "[worker-0]:    two\n", stdout, "the run has ended")
}

// Every directory that can be read here is read, from all host workers, and the others are
// named with their host: also while the run is followed, and after it was terminated.
func TestLogsOfARunOnSeveralHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.StartWorker(t, "--host-name", "host-b")
	away := f.StartWorker(t, "--host-name", "host-c")
	script := `echo "hello from $CLUSTERRUN_TASK"; echo up > $DIR/up-$CLUSTERRUN_TASK; until [ -e $DIR/end ]; do nap; done; echo bye`
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{{
		Type: "worker", Addresses: []string{"host-a", "host-b", "host-c"}, Command: harness.Bash(script),
	}}})
	follow := f.StartCLI(t, "logs", "-f", run.GetID(), "worker-1", "worker-0")
	for _, name := range []string{"up-worker-0", "up-worker-1", "up-worker-2"} {
		f.file(name)
	}
	stdout, stderr := f.Succeeds(t, "logs", run.GetID())
	assert.Len(t, linesWith(stdout), 3, "hosts have not said yet where the output is: %s", stderr)
	// As if that host were another machine.
	logs := filepath.Join(away.State, "logs")
	require.NoError(t, os.Rename(logs, logs+".away"))
	harness.Eventually(t, "both hosts are followed", func() bool { return len(linesWith(follow.Stdout())) == 2 })
	followAll := f.StartCLI(t, "logs", "-f", run.GetID())
	harness.Eventually(t, "the task that is left out is named at once", func() bool { return strings.Contains(followAll.Stderr(), "worker-2 on host-c") })
	require.NoError(t, os.Rename(logs+".away", logs))
	touch(t, f, "end")
	assert.Zero(t, follow.ExitCode(), follow.Stderr())
	assert.Zero(t, followAll.ExitCode(), "its logs are there in the end")
	assert.Len(t, linesWith(followAll.Stdout()), 6)
	for _, p := range []*harness.Process{follow, followAll} {
		assert.Subset(t, linesWith(p.Stdout()), []string{"[worker-0]:    hello from worker-0", "[worker-0]:    bye", "[worker-1]:    hello from worker-1", "[worker-1]:    bye"})
	}
	f.result(run)

	stdout, stderr = f.Succeeds(t, "logs", run.GetID())
	assert.Len(t, linesWith(stdout), 6)
	assert.Empty(t, stderr)

	require.NoError(t, os.Rename(logs, logs+".away"))
	code, stdout, stderr := f.CLI(t, "logs", "--json", run.GetID())
	assert.Equal(t, 125, code)
	assert.Len(t, linesWith(stdout), 4)
	assert.Contains(t, stderr, "left out:\n  worker-2 on host-c, in "+logs)
	code, stdout, stderr = f.CLI(t, "logs", run.GetID(), "worker-2")
	assert.Equal(t, 125, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "worker-2 on host-c, in "+logs)
	stdout = f.OK(t, "logs", run.GetID(), "worker-1", "--attempt", "last")
	assert.Len(t, linesWith(stdout), 2)

	// A run without a result does not record the hosts of its tasks.
	run = f.start(&spec.RunSpec{Logs: spec.Logs{Dir: f.dir + "/logs"}, Tasks: []spec.TaskGroup{group("worker", 1, `echo up > $DIR/up; exec sleep 1000`)}})
	f.file("up")
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "for the test"))
	assert.Contains(t, f.Fails(t, 125, "logs", run.GetID()), "worker-0: the run does not say where they are")
	assert.Equal(t, "", f.OK(t, "logs", "--state-dir", f.dir, run.GetID()))
	f.alive(0)
}

// TE-26, TE-29: filtered files are complete, even if the Temporal side of the host worker is
// killed.
func TestFilteredFiles_TE26_TE29(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{
		Logs: spec.Logs{Dir: f.dir + "/logs", DuplicateStdoutFilters: []string{"helloA"}, DuplicateStderrFilters: []string{"worldA", "B"}},
		Tasks: []spec.TaskGroup{group("worker", 2,
			`N=$([ $RANK = 0 ] && echo A || echo B); echo hello$N; echo world$N >&2; echo up > $DIR/up$RANK
			until [ -e $DIR/go ]; do nap; done; echo later hello$N; echo noise`)},
	})
	f.file("up0")
	f.file("up1")
	path := func(name string) string {
		files, _ := filepath.Glob(filepath.Join(f.dir, "logs", "*", "*", "attempt_0", name))
		if len(files) == 0 {
			return ""
		}
		return files[0]
	}
	read := func(name string) string {
		b, _ := os.ReadFile(path(name))
		return string(b)
	}
	harness.Eventually(t, "lines are collected", func() bool { return read("filtered_stdout.log") == "[worker-0]:    helloA\n" })
	require.NoError(t, syscall.Kill(f.worker.Side(), syscall.SIGKILL))
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, "[worker-0]:    helloA\n[worker-0]:    later helloA\n", read("filtered_stdout.log"), "complete when the run has ended")
	assert.ElementsMatch(t, []string{"[worker-0]:    worldA", "[worker-1]:    worldB"}, linesWith(read("filtered_stderr.log")))
}

// SEED-76: the null device keeps no output, and no task fails because of it.
func TestNullLogDir_SEED76(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, stdout, stderr := l.run("run", "--id", "null", "--json", "--log-dir", "/dev/null", "--set", "return_output=true", "--set", "logs.duplicate_stdout_filters=[hello]",
		"-n", "2", "--", "bash", "-c", `echo hello; [ -z "$CLUSTERRUN_ERROR_FILE$CLUSTERRUN_RESULT_FILE$TORCHELASTIC_ERROR_FILE" ]`)
	require.Zero(t, code, stderr)
	r := must.JSON[spec.RunResult](t, stdout)
	assert.Empty(t, r.Output)
	for _, task := range r.Tasks {
		assert.Nil(t, task.Value)
		assert.Empty(t, task.Exit.LogDir)
	}
	assert.NoDirExists(t, filepath.Join(l.home, ".local/state/clusterrun/logs/null"))

	assert.NotContains(t, l.fails(7, "run", "--log-dir", "/dev/null", "-n", "1", "--", "bash", "-c", "exit 7"), "error file")

	assert.Contains(t, l.fails(125, "logs", "null"), "has no logs on this host")
}

// A run that is started by a launcher leaves its root cause's error where that
// looks for it.
func TestErrorFileOfTheParent(t *testing.T) {
	t.Parallel()
	const fail = `echo '{"message": {"message": "KeyError: lr", "extraInfo": {"py_callstack": "in <module>", "timestamp": "10"}}}' > "$CLUSTERRUN_ERROR_FILE"; exit 3`
	l := newLocal(t)
	ours := filepath.Join(l.home, "error.json")
	fails := func(script string) string {
		t.Helper()
		code, _, stderr := l.runIn([]string{"TORCHELASTIC_ERROR_FILE=" + ours}, "run", "-n", "1", "--", "bash", "-c", script)
		require.Equal(t, 3, code, stderr)
		return stderr
	}

	fails("exit 3")
	assert.NoFileExists(t, ours, "TE-70: the child left none")

	assert.NotContains(t, fails(fail), "replaced")
	b := must.Get(os.ReadFile(ours))(t)
	assert.JSONEq(t, `{"message": {"message": "KeyError: lr", "errorCode": 3, "extraInfo": {"py_callstack": "in <module>", "timestamp": "10"}}}`, string(b), "TE-69")

	assert.Contains(t, fails(`echo '{"message":  "plain"}' > "$TORCHELASTIC_ERROR_FILE"; exit 3`), "replaced "+ours, "TE-77")
	b = must.Get(os.ReadFile(ours))(t)
	assert.Equal(t, "{\"message\":  \"plain\"}\n", string(b), "TE-76: byte for byte")

	t.Run("a run within a run", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(l.home, "fail.sh"), []byte(fail), 0o600))
		code, stdout, stderr := l.run("run", "--json", "-n", "1", "--", harness.Clusterrun(t), "run", "-n", "1", "--", "bash", "fail.sh")
		assert.Equal(t, 3, code, stderr)
		r := must.JSON[spec.RunResult](t, stdout)
		assert.Equal(t, spec.ErrSubprocess, r.ErrorType)
		assert.True(t, r.Message == "worker-0 reported an error: KeyError: lr", r.Message)
	})
}

// The real @record (TE-64): the error that it writes is the run's error, with its time.
func TestTorchRecord_TE64(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // where distributions put a packaged torch
	if exec.Command(python, "-c", "import torch.distributed.elastic").Run() != nil {
		t.Skip("needs torch for " + python)
	}
	l := newLocal(t)
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "train.py"), []byte(`
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise ValueError("the loss is not a number")
main()
`), 0o600))
	before := time.Now()
	code, stdout, stderr := l.run("run", "--json", "-n", "1", "--", python, "train.py")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "worker-0 reported an error: ValueError: the loss is not a number")
	r := must.JSON[spec.RunResult](t, stdout)
	assert.Equal(t, spec.ErrSubprocess, r.ErrorType)
	f := r.FirstFailure
	require.NotNil(t, f)
	assert.True(t, f.Failed().After(before) && f.Failed().Before(task(r, "worker-0").Exit.Ended), "%s", f.Failed())
	assert.NotZero(t, f.Failed().Nanosecond(), "finer than the whole seconds that torch writes")
	assert.FileExists(t, f.ErrorFile)
}
