package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Runs are found by name, host, cause, time, owner, and ID prefix. On a terminal, a
// run's status is redrawn until the end of the run.
func TestFind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	watch := func(args ...string) *harness.Terminal {
		return harness.StartInTerminal(t, f.dir, harness.Env(f.dir, "TEMPORAL_ADDRESS="+f.Address), append([]string{harness.Clusterrun(t)}, args...)...)
	}
	harness.Eventually(t, "the queue has the host", func() bool { return len(f.hosts()) == 1 })
	begin := func(id, name, script string) {
		t.Helper()
		_, err := starter.Start(t.Context(), f.client,
			&spec.RunSpec{Name: name, Dir: f.dir, Tasks: []spec.TaskGroup{group("worker", 1, script)}}, starter.Options{ID: id})
		require.NoError(t, err)
	}
	list := func(flags ...string) []string {
		t.Helper()
		stdout := f.OK(t, append([]string{"list", "--json"}, flags...)...)
		runs := must.JSON[[]starter.Summary](t, stdout)
		ids := []string{}
		for _, r := range runs {
			ids = append(ids, r.RunID)
		}
		return ids
	}
	begin("iris-aaaa", "iris", "echo lost; exit 3")
	begin("iris-abbb", "iris", "true")
	begin("mnist-cc", "mnist", "exec sleep 1000")
	status := watch("status", "-w", "mnist-cc")
	status.Expect("run mnist-cc: running.*worker-0 +running")
	harness.Eventually(t, "all are listed, with how they ended", func() bool {
		return len(list()) == 3 && len(list("--failed")) == 1 && len(list("--cause", "origin")) == 1 && len(list("--open")) == 1 && len(list("--on-host", "host-a")) == 3
	})
	for flags, want := range map[string]string{
		"--failed": "iris-aaaa", "--cause origin": "iris-aaaa", "--cause completed": "iris-abbb", "--cause oom": "", "--open": "mnist-cc", "--name ir*": "iris-abbb iris-aaaa", "--name mnist-c?": "mnist-cc",
		"--since 1h": "mnist-cc iris-abbb iris-aaaa", "--since 0s": "", "--owner nobody@nowhere": "",
		"--on-host host-a": "mnist-cc iris-abbb iris-aaaa", "--on-host b": "", "--limit 1": "mnist-cc", `--name it's`: "", `--on-host it's\`: "",
	} {
		assert.Equal(t, strings.Fields(want), list(strings.Fields(flags)...), flags)
	}
	stdout, stderr := f.Succeeds(t, "list", "--limit", "2")
	assert.Contains(t, stdout, "exec sleep 1000")
	assert.NotContains(t, stdout, f.dir)
	assert.Contains(t, stderr, "older runs are not shown; raise --limit to show them")

	assert.Regexp(t, `iris-aaaa +failed +3 .* origin +0 +3 +host-a +\S+ +`+f.dir, f.OK(t, "list", "--wide"))
	for _, a := range spec.Attributes() {
		kind := must.Get(enumspb.IndexedValueTypeFromString(a.Type))(t)
		found, err := f.client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: a.Name + " IS NOT NULL"})
		require.NoError(t, err, "the embedded server knows it")
		require.NotEmpty(t, found.Executions)
		p := found.Executions[0].SearchAttributes.IndexedFields[a.Name]
		got := must.Get(enumspb.IndexedValueTypeFromString(string(p.GetMetadata()["type"])))(t)
		assert.Equal(t, kind, got, a.Name)
	}

	assert.Contains(t, f.OK(t, "status", "mn"), "run mnist-cc: running")
	assert.Contains(t, f.OK(t, "status", "--last"), "run mnist-cc: running")
	assert.Contains(t, f.Fails(t, 2, "status", "iris-a"), `"iris-a" is ambiguous; it matches iris-a`)
	code, _, stderr := f.CLI(t, "status", "nosuch")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "no run \"nosuch\"")
	stderr = f.Fails(t, 2, "status", "--last", "mnist-cc")
	assert.Contains(t, stderr, "unexpected argument")
	code, stdout, _ = f.CLI(t, "__complete", "logs", "m")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "mnist-cc\t")
	assert.NotContains(t, stdout, "iris")
	for words, want := range map[string]string{
		"stop iris-aaaa iris-": "iris-abbb\t/bin/bash -c true", "diff mnist-cc iris-aa": "iris-aaaa\t/bin/bash -c echo lost; exit 3", "status mnist-cc ": "",
	} {
		code, stdout, stderr = f.CLI(t, append([]string{"__complete"}, strings.Split(words, " ")...)...)
		assert.Zero(t, code, words)
		offered, _, _ := strings.Cut(stdout, ":")
		assert.Equal(t, want, strings.TrimSpace(offered), words)
		assert.NotContains(t, stderr, "clusterrun:", words)
	}
	assert.Contains(t, f.Fails(t, 2, "stop", "iris-a"), `"iris-a" is ambiguous; it matches iris-a`)
	assert.Contains(t, f.OK(t, "signal", "--last", "worker-0", "CONT"), "signalled: worker-0")
	assert.Contains(t, f.OK(t, "signal", "mn", "worker", "CONT"), "signalled: worker-0")

	// Arguments are several runs, patterns, or tasks of a run.
	for words, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"wait iris-abbb iris-a*":           {3, "", "iris-aaaa failed"},
		"wait --any iris-abbb mnist-cc":    {0, "", "iris-abbb succeeded"},
		"wait xy*":                         {125, "", "xy*: no run matches"},
		"stop iris-*":                      {125, "", "iris-*: no open run matches"},
		"stop mnist-cc worker-7":           {125, "", "worker-7 is not a task of this run"},
		"stop mnist-cc worker-0 iris-aaaa": {2, "", "worker-0 is a task of run mnist-cc, but iris-aaaa is a run"},
		"stop --wait mnist-cc worker-0":    {2, "", "--wait applies to whole runs, but worker-0 is a task of run mnist-cc"},
	} {
		code, stdout, stderr = f.CLI(t, strings.Split(words, " ")...)
		assert.Equal(t, want.code, code, words)
		assert.Equal(t, want.stdout, stdout, words)
		assert.Contains(t, stderr, want.stderr, words)
	}
	code, stdout, stderr = f.CLI(t, "wait", "--json", "iris-*")
	assert.Equal(t, 3, code, stderr)
	assert.Len(t, strings.Split(strings.TrimSpace(stdout), "\n"), 2)
	assert.Contains(t, stdout, `{"run_id":"iris-aaaa","verdict":"failed"`)
	assert.Equal(t, "stopped: mnist-cc\n", f.OK(t, "stop", "--wait", "mnist-*"))
	assert.Equal(t, 130, status.ExitCode())
	status.Expect("run mnist-cc: cancelled")
}

// Rm removes what ended runs left behind, here and on the server, but does not touch open runs.
func TestRm(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	program := []string{"-n", "2", "--env", l.mark, "--env", "BIN=" + harness.Clusterrun(t)}
	living := l.start(append(append([]string{"run", "--id", "lives"}, program...), "--", "sh", "-c", "echo up; exec sleep 1000")...)
	l.ok(append(append([]string{"run", "--id", "past"}, program...), "--", "sh", "-c", "$BIN task barrier met")...)
	l.fails(1, "run", "--id", "failed", "--", "false")
	harness.Eventually(t, "the run lives", func() bool { return strings.Count(living.Stdout(), "up") == 2 })
	logs := filepath.Join(l.state(), "logs")
	assert.Contains(t, l.fails(125, "rm", "lives"), "run lives has not ended; stop it with `clusterrun stop lives`")
	assert.Regexp(t, `^would remove: failed \(.* KiB\)\n$`, l.ok("rm", "--dry-run", "failed"))
	assert.Contains(t, l.ok("rm", "failed"), "removed: failed ")
	assert.NoDirExists(t, filepath.Join(logs, "failed"))
	assert.Regexp(t, `(?m)^would remove: past \(.* KiB\)$`, l.ok("rm", "--older-than", "0s", "--dry-run"))
	assert.DirExists(t, filepath.Join(logs, "past"))
	assert.Contains(t, l.ok("rm", "--older-than", "0s", "--yes"), "removed: past ")
	assert.NoDirExists(t, filepath.Join(logs, "past"))
	assert.DirExists(t, filepath.Join(logs, "lives"))
	harness.Eventually(t, "the server forgets the run", func() bool {
		_, _, stderr := l.run("status", "past")
		return strings.Contains(stderr, "no run \"past\"")
	})
	l.ok("stop", "--wait", "lives")
	living.ExitCode()
	code, stdout, stderr := l.run("rm", "lives", "past")
	assert.Equal(t, 125, code)
	assert.Contains(t, stdout, "removed: lives")
	assert.Contains(t, stderr, "no run \"past\"")
	harness.Eventually(t, "the server forgets all", func() bool {
		_, stdout, _ := l.run("list", "--json")
		return stdout == "[]\n"
	})
}
