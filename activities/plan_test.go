package activities

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A plan outlives the host worker that made it.
func TestPlansAreOnDisk(t *testing.T) {
	dir := t.TempDir()
	run := runkey.Run{Namespace: "n", WorkflowID: "w", RunID: "r"}
	s := must.Get(openPlans(dir))(t)
	_, err := s.get(run)
	require.ErrorIs(t, err, errNoPlan)
	_, err = s.update(run, func(p *plan) (*plan, error) {
		require.Nil(t, p)
		return &plan{Run: run, Tasks: []string{"worker-0"}, Spec: &spec.RunSpec{}}, nil
	})
	require.NoError(t, err)

	again := must.Get(openPlans(dir))(t)
	p := must.Get(again.get(run))(t)
	assert.Equal(t, []string{"worker-0"}, p.Tasks)
	require.NoError(t, again.drop(run))
	require.NoError(t, again.drop(run), "dropping twice is harmless")

	last := must.Get(openPlans(dir))(t)
	assert.Empty(t, last.all())
}

// A plan that is being written to a slow disk does not delay the plans of other runs.
func TestPlansOfOtherRunsDoNotWait(t *testing.T) {
	s := must.Get(openPlans(t.TempDir()))(t)
	keep := func(p *plan) func(*plan) (*plan, error) {
		return func(*plan) (*plan, error) { return p, nil }
	}
	slow, other := runkey.Run{WorkflowID: "slow"}, runkey.Run{WorkflowID: "other"}
	_, err := s.update(slow, func(*plan) (*plan, error) {
		_, err := s.update(other, keep(&plan{Run: other, Spec: &spec.RunSpec{}}))
		return &plan{Run: slow, Spec: &spec.RunSpec{}}, err
	})
	require.NoError(t, err)
	assert.Len(t, s.all(), 2)
	assert.Empty(t, s.changing)

	// Changes to one run wait for each other: none is lost.
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := s.change(slow, func(p *plan) error {
				p.Generation++
				return nil
			})
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	p := must.Get(s.get(slow))(t)
	assert.Equal(t, 20, p.Generation)
	assert.Empty(t, s.changing)
}

func TestADamagedPlanIsSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plans", "x.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	s := must.Get(openPlans(dir))(t)
	assert.Empty(t, s.all())
	assert.Equal(t, []string{path + ".damaged"}, s.damaged)
	assert.FileExists(t, path+".damaged")
}

// A full disk is not the spec's fault, so the run waits or is placed on another host. A run that
// brought its own host cannot be placed elsewhere.
func TestAFullDiskIsRefusedAsAPlace(t *testing.T) {
	full, wrong := spec.Problem{Path: "logs.dir", Message: "no space left on device", Remedy: makeRoom}, spec.Problem{Path: "dir", Message: "it is no directory"}
	for _, c := range []struct {
		owned    bool
		problems []spec.Problem
		want     string
	}{
		{false, []spec.Problem{full}, spec.ErrPlacement},
		{false, []spec.Problem{full, wrong}, spec.ErrInvalidRunSpec},
		{true, []spec.Problem{full}, spec.ErrInvalidRunSpec},
	} {
		h := assemble(&core{Config: Config{Name: "host-a", Owned: c.owned}})
		var app *temporal.ApplicationError
		require.ErrorAs(t, h.reservations.refused(c.problems), &app)
		assert.Equal(t, c.want, app.Type())
		assert.Equal(t, c.want == spec.ErrInvalidRunSpec, app.NonRetryable())
	}
}

func TestPreflightReportsEverything(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o644))
	tool := filepath.Join(dir, "tool")
	require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o755))
	h := assemble(&core{Config: Config{Name: "host-a"}})
	task := func(typ, dir string, command ...string) spec.Task {
		return spec.Task{Type: typ, Command: command, Dir: dir, Env: spec.EnvOf(map[string]string{"PATH": "/usr/bin:/bin:" + dir})}
	}
	problems := h.checks.preflight(runkey.Run{}, &spec.RunSpec{Logs: spec.Logs{Dir: plain}}, nil, []spec.Task{
		task("good", dir, "tool"), task("relative", dir, "./tool"),
		task("missing", dir, "no-such-program"), task("plain", dir, "./plain"), task("dir", dir, dir),
		task("nowhere", filepath.Join(dir, "no"), "true"), task("file", plain, "true"),
	})
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Path+": "+p.Message)
	}
	assert.Equal(t, []string{
		"command[0]: no-such-program on host host-a: command not found (missing-0)",
		"command[0]: ./plain on host host-a: not executable (plain-0)",
		"command[0]: " + dir + " on host host-a: is a directory (dir-0)",
		"dir: working directory " + filepath.Join(dir, "no") + " on host host-a: no such file or directory (nowhere-0)",
		"dir: " + plain + " on host host-a is not a directory (file-0)",
		"logs.dir: " + plain + " is a file on host host-a",
	}, texts)

	// If nothing else is wrong, the exit code is the same as in a shell.
	for program, want := range map[string]int{"no-such-program": 127, "./plain": 126, dir: 126} {
		problems := h.checks.preflight(runkey.Run{}, &spec.RunSpec{}, nil, []spec.Task{task("one", dir, program)})
		assert.Equal(t, want, (&spec.InvalidSpecError{Problems: problems}).ExitCode())
	}
	assert.Equal(t, 2, (&spec.InvalidSpecError{Problems: problems}).ExitCode())
}

func TestPreflightLooksForSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("s3cret"), 0o600))
	t.Setenv("HOST_TOKEN", "s3cret")
	h := assemble(&core{Config: Config{Name: "host-a"}})
	tasks := func(env spec.Env) (tasks []spec.Task) {
		for i := range 3 {
			tasks = append(tasks, spec.Task{Type: "worker", Index: i, Command: []string{"true"}, Dir: "/", Env: env})
		}
		return tasks
	}
	assert.Empty(t, h.checks.preflight(runkey.Run{}, &spec.RunSpec{}, nil, tasks(spec.Env{
		"A": {From: spec.Source{FromFile: file}}, "B": {From: spec.Source{FromEnv: "HOST_TOKEN"}},
	})))
	var texts []string
	for _, p := range h.checks.preflight(runkey.Run{}, &spec.RunSpec{}, nil, tasks(spec.Env{
		"A": {From: spec.Source{FromFile: "/nonexistent"}}, "B": {From: spec.Source{FromEnv: "NO_TOKEN"}}, "C": {Value: "1"},
	})) {
		texts = append(texts, p.String())
	}
	assert.Equal(t, []string{
		"env.A.from_file: on host host-a: /nonexistent: no such file or directory (worker-0 and 2 more); make it a file that the host worker can read and that contains only the value",
		"env.B.from_env: on host host-a: the host worker's environment does not contain NO_TOKEN (worker-0 and 2 more); start the host worker with it, or name another variable or a file",
	}, texts)
}

func TestWhoWaitsForTheEndOfARunHere(t *testing.T) {
	s := must.Get(openPlans(t.TempDir()))(t)
	h := assemble(&core{plans: s})
	run := runkey.Run{Namespace: "n", WorkflowID: "w", RunID: "r"}
	h.AwaitOver(t.Context(), run) // the run was never on this host
	begin := func() {
		_, err := s.update(run, func(*plan) (*plan, error) { return &plan{Run: run, Spec: &spec.RunSpec{}}, nil })
		require.NoError(t, err)
	}
	for name, end := range map[string]func() error{
		"released": func() error {
			_, err := s.change(run, func(p *plan) error { p.Released = true; return nil })
			return err
		},
		"dropped": func() error { return s.drop(run) },
	} {
		begin()
		over := make(chan struct{})
		go func() {
			defer close(over)
			h.AwaitOver(t.Context(), run)
		}()
		begin() // any change
		select {
		case <-over:
			t.Fatal("it is not over")
		default:
		}
		require.NoError(t, end(), name)
		<-over
	}
}
