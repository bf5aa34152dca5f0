package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/tests/browser"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A run is shown, run again, compared, and exported to a file that tar opens.
func TestRepeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Name: "iris", Dir: f.dir, Tasks: []spec.TaskGroup{group("worker", 2, "echo level $LEVEL of $RANK; exit 3")},
		OnFailure: spec.OnFailureContinue, Env: spec.Env{"LEVEL": {Value: "1"}, "MY_TOKEN": {Value: "hush"}}})
	harness.Result(t, run)
	first := run.GetID()
	cli := func(code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := f.CLI(t, args...)
		require.Equal(t, code, got, "%v\n%s\n%s", args, stdout, stderr)
		return stdout
	}
	shown := cli(0, "show", first)
	assert.Contains(t, shown, "failed")
	assert.Contains(t, shown, "running ")
	assert.Contains(t, shown, "    LEVEL=1\n")
	assert.NotContains(t, shown, "hush")
	file := filepath.Join(t.TempDir(), "again.yaml")
	require.NoError(t, os.WriteFile(file, []byte(cli(0, "show", "--spec", first)), 0o600))
	cli(0, "validate", file)

	second := strings.TrimSpace(cli(0, "rerun", "-x", "LEVEL=2", first))
	require.NotEqual(t, first, second)
	cli(3, "wait", second)
	cli(0, "diff", first, first)
	c := must.JSON[record.Comparison](t, cli(1, "diff", "--json", first, second))
	what := map[string]bool{}
	for _, d := range c.Differences {
		what[d.In+" "+d.What] = true
	}
	for _, want := range []string{"spec env.LEVEL"} {
		assert.True(t, what[want], "%s in %v", want, c.Differences)
	}
	assert.NotContains(t, what, "spec command")
	cli(2, "diff", first, "nosuch")
	cli(2, "diff", first)

	dir := t.TempDir()
	exported := filepath.Join(dir, "run.tar.gz")
	cli(0, "export", "--logs", "-o", exported, first)
	cli(2, "export", "-o", exported, first)
	require.NoError(t, exec.Command("tar", "-xzf", exported, "-C", dir).Run())
	unpacked := filepath.Join(dir, first)
	cli(0, "validate", filepath.Join(unpacked, "spec.yaml"))
	assert.Equal(t, readFile(t, file), readFile(t, filepath.Join(unpacked, "spec.yaml")))
	assert.Equal(t, "level 1 of 1\n", readFile(t, filepath.Join(unpacked, "logs", "attempt_0", "1", "stdout.log")))
}

// A run that has ended tells which code it ran, and how much it used, even if it was short.
func TestARunKnowsItsOrigin(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "train.py")
	write := func(text string) { require.NoError(t, os.WriteFile(program, []byte(text), 0o600)) }
	write("rate = 1\nprint(rate)\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cli := func(want int, args ...string) string {
		code, stdout, stderr := l.run(args...)
		require.Equal(t, want, code, stdout+stderr)
		return stdout
	}
	run := func(id string) {
		for range 20 { // a start does not wait for git on a busy machine
			cli(0, "run", "--id", id, "--dir", dir, "--", "python3", "train.py")
			if !strings.Contains(cli(0, "show", id), "git took longer") {
				return
			}
			cli(0, "rm", "--yes", id)
		}
		require.FailNow(t, "git took longer each time")
	}
	run("one")
	write("rate = 2\nprint(rate)\n")
	run("two")
	cli(0, "run", "--id", "three", "--dir", dir, "--set", "record_source=false", "--", "python3", "train.py")

	assert.Contains(t, cli(1, "diff", "one", "two"), "source:\n  train.py\n")
	assert.Contains(t, cli(0, "show", "two"), "train.py (changed, ")
	assert.NotContains(t, cli(0, "show", "three"), "\nsource:\n")
	of := must.JSON[record.Account](t, cli(0, "show", "--json", "one"))
	require.NotNil(t, of.Source)
	assert.Len(t, of.Source.Commit, 40)
	usage := must.JSON[struct{ Tasks []record.UsageHistory }](t, cli(0, "status", "--usage", "--history", "--json", "one"))
	require.Len(t, usage.Tasks, 1)
	assert.NotEmpty(t, usage.Tasks[0].Points)
}

// An export has the output of all hosts, whose files only they can read: bytes, files of errors
// and values, earlier attempts and processes that write nothing. A host that is gone is named.
func TestExportOfEveryHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	serve := []string{"--listen", "127.0.0.1", "--log-dir", apart}
	f.StartWorker(t, append([]string{"--host-name", "host-b"}, serve...)...)
	c := f.StartWorker(t, append([]string{"--host-name", "host-c"}, serve...)...)
	once := 1
	run := f.start(&spec.RunSpec{OnFailure: spec.OnFailureContinue, AutoRestart: true, MaxRestarts: &once, Tasks: []spec.TaskGroup{{
		Type: "worker", Addresses: []string{"host-b", "host-c", "host-b"},
		Command: []string{"bash", "-c", `[ $RANK = 2 ] && exit; seq 50000; echo "warned in $CLUSTERRUN_RESTART_COUNT" >&2; printf 'no end'
			cd /proc/$PPID/cwd; [ $RANK = 0 ] && { head -c 20000000 /dev/zero | tr '\0' 1 > $CLUSTERRUN_RESULT_FILE; exit; }
			echo '{"message": "boom"}' > $CLUSTERRUN_ERROR_FILE; exit 3`},
	}}})
	r := f.result(run)
	require.Equal(t, spec.VerdictFailed, r.Verdict, r.Message)

	dir := t.TempDir()
	unpack := func(file string) string {
		into := t.TempDir()
		out, err := exec.Command("tar", "-xzf", file, "-C", into).CombinedOutput()
		require.NoError(t, err, string(out))
		return filepath.Join(into, run.GetID())
	}
	logOf := func(unpacked string, attempt, rank int, name string) string {
		file := filepath.Join(unpacked, "logs", fmt.Sprintf("attempt_%d/%d/%s", attempt, rank, name))
		if _, err := os.Stat(file); err != nil {
			return "there is none"
		}
		return readFile(t, file)
	}
	whole := filepath.Join(dir, "whole.tar.gz")
	// The copies are in the directory of the export file, since there is no temporary
	// directory.
	export := harness.Start(t, dir, harness.Env(dir, "TEMPORAL_ADDRESS="+f.Address, "TMPDIR="+filepath.Join(dir, "nosuch")),
		harness.Clusterrun(t), "export", "--logs", "-o", whole, run.GetID())
	require.Zero(t, export.ExitCode(), export.Stderr())
	left := must.Get(filepath.Glob(filepath.Join(dir, ".cluster*")))(t)
	assert.Empty(t, left)
	unpacked := unpack(whole)
	var numbers strings.Builder
	for i := range 50000 {
		fmt.Fprintln(&numbers, i+1)
	}
	for _, p := range []struct{ attempt, rank int }{{0, 0}, {0, 1}, {1, 1}} {
		assert.Equal(t, numbers.String()+"no end", logOf(unpacked, p.attempt, p.rank, "stdout.log"))
		assert.Equal(t, fmt.Sprintf("warned in %d\n", p.attempt), logOf(unpacked, p.attempt, p.rank, "stderr.log"))
	}
	assert.JSONEq(t, `{"message": "boom"}`, logOf(unpacked, 0, 1, "error.json"))
	assert.Empty(t, logOf(unpacked, 0, 2, "stdout.log"))
	assert.Len(t, logOf(unpacked, 0, 0, "result.json"), 20_000_000, "a value of any size is whole")

	// How processes were started is in it, with the output and without.
	starts := func(file string) (starts []*tasklog.Start) {
		of := must.JSON[record.Account](t, readFile(t, filepath.Join(unpack(file), "account.json")))
		for _, task := range of.Tasks {
			starts = append(starts, task.Start)
		}
		return starts
	}
	bare := filepath.Join(dir, "bare.tar.gz")
	assert.Equal(t, bare+"\n", f.OK(t, "export", "-o", bare, run.GetID()))
	for _, all := range [][]*tasklog.Start{starts(whole), starts(bare)} {
		require.Len(t, all, 3)
		for rank, start := range all {
			require.NotNil(t, start, "of rank %d", rank)
			assert.Equal(t, spec.Version, start.Version)
			assert.Equal(t, fmt.Sprint(rank), *start.Set["RANK"])
			assert.Contains(t, start.Inherited, "PATH")
		}
	}
	startFile := must.Get(filepath.Glob(filepath.Join(c.Dir, "logs", run.GetID(), "*", "attempt_1", "1", tasklog.StartFile)))(t)
	require.Len(t, startFile, 1)
	assert.Equal(t, readFile(t, startFile[0]), logOf(unpacked, 1, 1, tasklog.StartFile))

	c.Kill(syscall.SIGTERM)
	require.Zero(t, c.ExitCode())
	part := filepath.Join(dir, "part.tar.gz")
	code, stdout, stderr := f.CLI(t, "export", "--logs", "-o", part, run.GetID())
	assert.Equal(t, 125, code)
	assert.Equal(t, part+"\n", stdout, "what there is is in it")
	assert.Contains(t, stderr, "worker-1 (attempt 0), worker-1 on host-c, in "+apart)
	unpacked = unpack(part)
	assert.Equal(t, numbers.String()+"no end", logOf(unpacked, 0, 0, "stdout.log"))
	assert.Equal(t, "there is none", logOf(unpacked, 0, 1, "stdout.log"))
}

// The page of a run in a file opens without a server. Text of the run is text on it.
func TestAPageInAFile(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("run", "--id", "bad", "-n", "2", "--", "bash", "-c",
		`echo "</pre><script>document.title = 'taken'</script>$RANK" >&2; seq 200000; [ $RANK = 0 ] || sleep 1000; exit 3`)
	require.Equal(t, 3, code, stderr)
	file := filepath.Join(t.TempDir(), "bad.html")
	l.ok("export", "--format", "html", "bad", "-o", file)
	info := must.Get(os.Stat(file))(t)
	assert.Less(t, info.Size(), int64(5<<20))

	p := browser.Start(t).Open(t, "file://"+file)
	var shown struct {
		Title, Cause, Output string
		Lines, Found         int
	}
	p.Eval(`(() => {
		const lines = () => [...document.querySelectorAll(".l")].filter((line) => !line.hidden).length;
		const before = lines(), search = document.querySelector("#output [name=search]");
		search.value = "199999";
		search.dispatchEvent(new Event("input", { bubbles: true }));
		return {Title: document.title, Cause: document.getElementById("cause").innerText, Output: document.getElementById("output").textContent, Lines: before, Found: lines()};
	})()`, &shown)
	assert.Contains(t, shown.Title, "bad")
	assert.Contains(t, shown.Cause, "worker-0")
	assert.Contains(t, shown.Output, "</pre><script>document.title = 'taken'</script>0")
	assert.Greater(t, shown.Lines, 100)
	assert.Contains(t, []int{1, 2}, shown.Found, "one line, of both ranks or of each")
	assert.Empty(t, p.Problems())
}
