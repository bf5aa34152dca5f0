package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// `start RUN extra-0 -- /no/such/program` used to print "started", and then the whole
// run failed.
func TestAStartThatWouldFailIsRefusedBeforehand(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#! /no/such/interpreter -u\n"), 0o700))
	carriage, byEnv := filepath.Join(t.TempDir(), "carriage"), filepath.Join(t.TempDir(), "by-env")
	require.NoError(t, os.WriteFile(carriage, []byte("#!/bin/sh\r\necho\r\n"), 0o700))
	require.NoError(t, os.WriteFile(byEnv, []byte("#!/usr/bin/env python3\r\n"), 0o700))
	for name, c := range map[string]struct {
		task spec.Task
		want string
	}{
		"a line for a shell": {spec.Task{Type: "extra", Command: []string{"echo $RANK && echo it's"}}, "echo $RANK && echo it's on host host-a: command not found (extra-0); that requires a shell: sh -c 'echo $RANK && echo it'\\''s'"},
		"an operator":        {spec.Task{Type: "extra", Command: []string{"true|cat"}}, `command not found (extra-0); that requires a shell: sh -c 'true|cat'`},
		"a builtin":          {spec.Task{Type: "extra", Command: []string{"cd", "/tmp"}}, `command not found (extra-0); that requires a shell: sh -c 'cd /tmp'`},
		"no such script":     {spec.Task{Type: "extra", Command: []string{"/no/train.py"}}, "/no/train.py on host host-a: command not found (extra-0); write its path"},
		"carriage return":    {spec.Task{Type: "extra", Command: []string{carriage}}, "its first line ends with a carriage return, as in Windows files (extra-0); remove the carriage returns: sed -i 's/\\r$//' " + carriage},
		"carriage by env":    {spec.Task{Type: "extra", Command: []string{byEnv}}, "its first line ends with a carriage return"},
		"well":               {spec.Task{Type: "extra", Command: []string{"true"}}, ""},
		"no such program":    {spec.Task{Type: "extra", Command: []string{"/no/such/program"}}, "command[0]: /no/such/program on host host-a: command not found (extra-0)"},
		"no interpreter":     {spec.Task{Type: "extra", Command: []string{script}}, "command[0]: " + script + " on host host-a: its interpreter /no/such/interpreter does not exist (extra-0); install it"},
		"no such directory":  {spec.Task{Type: "extra", Command: []string{"true"}, Dir: "/nonexistent"}, "dir: working directory /nonexistent on host host-a: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newControl(t).checkStart(hostapi.CheckStartInput{Task: c.task})
			checkRefusal(t, err, c.want)
		})
	}
	t.Run("of another generation", func(t *testing.T) {
		err := newControl(t).checkStart(hostapi.CheckStartInput{Group: spec.Group{Generation: 1}, Task: spec.Task{Type: "extra", Command: []string{"true"}}})
		checkRefusal(t, err, "host host-a no longer has this run")
	})
	// This host's supervisor panics when it is asked to stop something.
	t.Run("a restart leaves the task running", func(t *testing.T) {
		c := newControl(t)
		_, err := c.host.plans.change(c.host.plans.all()[0].Run, func(p *plan) error {
			p.Added = map[string]addedTask{"gone-0": {Task: spec.Task{Type: "gone", Command: []string{"/no/such/program"}}}}
			return nil
		})
		require.NoError(t, err)
		_, err = c.env.ExecuteActivity(c.host.RestartTasks, spec.HostRequest[spec.TaskRequest]{Request: spec.TaskRequest{Tasks: []string{"gone-0"}}})
		checkRefusal(t, err, "/no/such/program on host host-a: command not found (gone-0)")
	})
}

func (c *control) checkStart(in hostapi.CheckStartInput) error {
	_, err := c.env.ExecuteActivity(c.host.CheckStart, in)
	return err
}

func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	assert.Equal(t, spec.ErrInvalidRequest, app.Type())
	assert.True(t, app.NonRetryable())
	assert.Contains(t, app.Message(), want)
}

// limited is a supervisor that can only limit memory.
type limited struct{ supervisor.API }

func (limited) Controllers(context.Context) (supervisor.ControllersReply, error) {
	return supervisor.ControllersReply{Controllers: []string{"memory"}, Why: "there is memory only"}, nil
}

func TestPreflightRefusesLimitsThatCannotBeEnforced(t *testing.T) {
	h := assemble(&core{Config: Config{Name: "host-a", Supervisor: limited{}}})
	var files unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	task := func(typ string) spec.Task { return spec.Task{Type: typ, Command: []string{"true"}, Dir: "/"} }
	s := &spec.RunSpec{
		Limits: spec.Limits{Memory: "1GiB", PIDs: new(100), NoFile: new(int(files.Max))},
		Tasks:  []spec.TaskGroup{{Type: "ps", Limits: spec.Limits{NoFile: new(int(files.Max) + 1), CPUs: new(2)}}, {Type: "worker"}},
	}
	var texts []string
	for _, p := range h.checks.preflight(runkey.Run{}, s, nil, []spec.Task{task("ps"), task("worker")}) {
		texts = append(texts, p.String())
	}
	assert.Equal(t, []string{
		"limits.cpus: host host-a cannot enforce it: there is memory only (ps-0); or omit the limit",
		"limits.pids: host host-a cannot enforce it: there is memory only (ps-0 and 1 more); or omit the limit",
		fmt.Sprintf("limits.nofile: the host worker on host host-a may itself have at most %d (ps-0); raise its hard limit (ulimit -Hn, or LimitNOFILE of its service), or ask for less", files.Max),
	}, texts)
	assert.Equal(t, supervisor.Limits{Memory: 1 << 30, CPUs: 2, PIDs: 100, Rlimits: []supervisor.Rlimit{{Resource: unix.RLIMIT_NOFILE, Value: files.Max + 1}}}, limitsOf(s, task("ps")))
	none := limitsOf(&spec.RunSpec{Limits: spec.Limits{Core: spec.CoreNone}}, task("worker"))
	assert.Equal(t, []supervisor.Rlimit{{Resource: unix.RLIMIT_CORE}}, none.Rlimits)
	all := limitsOf(&spec.RunSpec{Limits: spec.Limits{Core: spec.CoreUnlimited}}, task("worker"))
	assert.Equal(t, []supervisor.Rlimit{{Resource: unix.RLIMIT_CORE, Value: unix.RLIM_INFINITY}}, all.Rlimits)
}

// A run's tasks on one host share its resources, even if they were placed separately.
func TestResourcesOfAHost_MPR33(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c")
	plans := must.Get(openPlans(t.TempDir()))(t)
	h := assemble(&core{Config: Config{Name: "a"}, plans: plans})
	run := runkey.Run{WorkflowID: "w"}
	two, one := 2, 1
	s := &spec.RunSpec{
		Devices: spec.Resources{"auto"}, CPUs: spec.Resources{"auto"},
		Tasks: []spec.TaskGroup{{Type: "chief", Count: &one}, {Type: "worker", Count: &two}, {Type: "ps", Count: &one}},
	}
	all := s.TaskList()
	in := hostapi.ReserveInput{Spec: s}

	problems := must.Get(h.checks.checkResources(run, in, all[:2]))(t)
	assert.Empty(t, problems)
	_, err := plans.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: s, Tasks: []string{"worker-1", "chief-0"}}, nil
	})
	require.NoError(t, err)
	problems = must.Get(h.checks.checkResources(run, in, all[1:]))(t)
	require.Len(t, problems, 1)
	assert.Equal(t, "devices: 4 tasks on host a share 3 devices (auto), but each needs one; set devices: [] for some types, or use fewer tasks", problems[0].String())
	problems = must.Get(h.checks.checkResources(runkey.Run{WorkflowID: "another"}, in, all[1:]))(t)
	assert.Empty(t, problems)

	s.Tasks[2].Devices = spec.Resources{}
	problems = must.Get(h.checks.checkResources(run, in, all[1:]))(t)
	assert.Empty(t, problems)

	// The order of local ranks counts, not the order of the reservations.
	p := must.Get(plans.get(run))(t)
	p.Tasks = []string{"ps-0", "worker-1", "chief-0"}
	p.Cluster.Members = []hostapi.Member{
		{Type: "chief", Rank: 0, Host: "a"}, {Type: "worker", Index: 0, Rank: 1, Host: "b"},
		{Type: "worker", Index: 1, Rank: 2, Host: "a", LocalRank: 1}, {Type: "ps", Rank: 3, Host: "a", LocalRank: 2},
	}
	l := &taskLease{Host: h, plan: p}
	for name, want := range map[string]string{"chief-0": "GPU-a,GPU-c", "worker-1": "GPU-b", "ps-0": "", "worker-2": "GPU-a,GPU-c", "worker-3": "GPU-b"} {
		task, ok := p.task(name)
		if !ok { // added later
			typ, index, err := spec.ParseTaskName(name)
			require.NoError(t, err)
			task = spec.Task{Type: typ, Index: index}
		}
		var process taskenv.Process
		cpus := must.Get(l.resources(task, &process))(t)
		assert.Equal(t, want, process.Devices["CUDA_VISIBLE_DEVICES"], name)
		assert.NotEmpty(t, cpus)
		assert.Len(t, cpus, process.CPUs)
	}

	// The devices are gone when the task starts.
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
	_, err = l.resources(all[0], &taskenv.Process{})
	assert.ErrorContains(t, err, "2 tasks on host a share 1 device (auto)")

	// If no resources are requested, nothing is set.
	p.Spec = &spec.RunSpec{Tasks: s.Tasks[:2]}
	var process taskenv.Process
	cpus := must.Get(l.resources(all[0], &process))(t)
	assert.Empty(t, cpus)
	assert.Equal(t, taskenv.Process{}, process)
}

// If a newer program asks for something unknown, the error names it, and counts as this host's
// refusal rather than a mistake of the run.
func TestWhatIsNotUnderstood(t *testing.T) {
	h := assemble(&core{Config: Config{Name: "host-a"}})
	for text, want := range map[string]string{
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker", "nicer": 1}]}, "generation": 0}`:           `host host-a has clusterrun ` + spec.Version + `, which does not support the run's spec (unknown field "nicer"); upgrade it on that host`,
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker"}]}, "generation": 0, "moon": 1}`:            `unknown field "moon"`,
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker"}], "on_silence": "sing"}, "generation": 0}`: `on_silence`,
		`{"spec": {"command": "true", "tasks": [{"type": "worker"}]}, "generation": 0}`:                         `command`,
		`{"generation": 0}`: "there is no spec",
		`{"spec": {"command": ["true"], "tasks": [{"type": "worker"}]}, "generation": 0}`: "",
	} {
		in := must.JSON[hostapi.ReserveInput](t, text)
		err := h.reservations.understands(in)
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		var refused *temporal.ApplicationError
		require.True(t, errors.As(err, &refused))
		assert.Equal(t, spec.ErrPlacement, refused.Type())
	}
}

// An elastic run that has lost a host requests fewer tasks than its spec has.
func TestAPartOfAnElasticRunIsUnderstood(t *testing.T) {
	s, err := spec.DecodeYAML([]byte(`{tasks: [{type: worker, count: 6, logs: {tee: "5:3"},
		overrides: {"0": {command: [a]}, "1": {command: [a]}, "2": {command: [a]}, "3": {command: [a]}, "4": {command: [a]}, "5": {command: [b]}}}],
		logs: {filter: [worker-4], redirects: "4:1"}, hosts: {count: "1:3"}, restart_scope: group}`))
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	for _, h := range []*Host{assemble(&core{}), assemble(&core{Config: Config{Guard: &guard.Guard{}}})} {
		alone := s.Sized(2)
		require.Error(t, alone.Validate())
		assert.NoError(t, h.reservations.understands(hostapi.ReserveInput{Spec: alone}))
		assert.NoError(t, h.reservations.understands(hostapi.ReserveInput{Spec: s.Sized(4), Tasks: []string{"worker-0", "worker-1"}}))
		assert.NoError(t, h.reservations.understands(hostapi.ReserveInput{Spec: s, Tasks: []string{"worker-0", "worker-1"}}))

		newer := *alone
		newer.OnFailure = "hibernate"
		assert.ErrorContains(t, h.reservations.understands(hostapi.ReserveInput{Spec: &newer}), "hibernate")
		huge := *alone
		huge.Hosts.Count = "1:9223372036854775807"
		assert.ErrorContains(t, h.reservations.understands(hostapi.ReserveInput{Spec: &huge}), "hosts.count")
		empty := *alone
		empty.Tasks = nil
		assert.ErrorContains(t, h.reservations.understands(hostapi.ReserveInput{Spec: &empty}), "tasks")
	}
}

// A program does not take over runs if it would lose a part of their plans. Runs that are over do
// not count.
func TestPlansThatAreNotUnderstood(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, UnderstandsPlans(dir))
	s := must.Get(openPlans(dir))(t)
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "r1"}
	_, err := s.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: &spec.RunSpec{Command: []string{"true"}}}, nil
	})
	require.NoError(t, err)
	require.NoError(t, UnderstandsPlans(dir))

	var text map[string]any
	raw := must.Get(os.ReadFile(s.path(run)))(t)
	require.NoError(t, json.Unmarshal(raw, &text))
	text["spec"].(map[string]any)["nice"] = 5
	write := func(name string) {
		t.Helper()
		raw := must.Get(json.Marshal(text))(t)
		require.NoError(t, os.WriteFile(name, raw, 0o600))
	}
	write(s.path(run))
	assert.EqualError(t, UnderstandsPlans(dir), `cannot decode the stored description of run iris: unknown field "nice"`)
	text["released"] = true
	write(s.path(run))
	assert.NoError(t, UnderstandsPlans(dir))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "torn.json"), []byte("{"), 0o600))
	assert.NoError(t, UnderstandsPlans(dir), "that one is set aside")
}
