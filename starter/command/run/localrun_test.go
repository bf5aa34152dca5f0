package run

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A signal just after a run's start either cancels the start or is left to supervise.
func TestNoSignalIsLostWhileARunIsStarted(t *testing.T) {
	for range 2000 {
		signals := make(chan os.Signal, 1)
		a := &cli.App{}
		a.Printer.Hurried = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		stop := cancelBySignal(a, signals, cancel)
		go func() { signals <- syscall.SIGINT }()
		if s := stop(); s == nil {
			assert.Equal(t, syscall.SIGINT, <-signals)
			assert.NoError(t, ctx.Err())
		} else {
			assert.Error(t, ctx.Err())
		}
		cancel()
	}
}

// One user's agents on one machine share a key. An empty key file, for example after a power
// cut, is refused because an empty key would not be secret.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	first := must.Get(ownKey(dir))(t)
	second := must.Get(ownKey(dir))(t)
	assert.Equal(t, first, second)

	file := filepath.Join(dir, "agents.key")
	require.NoError(t, os.Truncate(file, 0))
	_, err := ownKey(dir)
	assert.EqualError(t, err, file+": the secret has 0 bytes; it needs 16; remove the file to create a new one")
	require.NoError(t, os.Remove(file))
	third := must.Get(ownKey(dir))(t)
	assert.NotEqual(t, first, third)
}

// If a run stops, it reports the reason to its owner. A task that was stopped with it does not
// count.
func TestEndedWell(t *testing.T) {
	task := func(name string, state spec.TaskState, cause spec.Cause) starter.TaskStatus {
		s := starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, State: state}}
		if cause != "" {
			s.Exit = &spec.Exit{Cause: cause}
		}
		return s
	}
	running := task("worker-0", spec.TaskRunning, "")
	done := task("worker-1", spec.TaskEnded, spec.CauseCompleted)
	killed := task("worker-2", spec.TaskEnded, spec.CauseOrigin)
	for name, c := range map[string]struct {
		state spec.RunState
		tasks []starter.TaskStatus
		want  string
	}{
		"all run":                      {spec.RunRunning, []starter.TaskStatus{running, running}, ""},
		"one is done":                  {spec.RunRunning, []starter.TaskStatus{running, done}, "worker-1"},
		"one that never had a process": {spec.RunRunning, []starter.TaskStatus{running, task("worker-1", spec.TaskEnded, "")}, "worker-1"},
		"one has failed":               {spec.RunRunning, []starter.TaskStatus{killed, running}, ""},
		"a failure stops the others":   {spec.RunStopping, []starter.TaskStatus{done, killed}, ""},
		"which are gone":               {spec.RunReleasing, []starter.TaskStatus{done, killed}, ""},
		"the run has ended":            {spec.RunEnded, []starter.TaskStatus{done, killed}, ""},
		"the group is restarted":       {spec.RunRestarting, []starter.TaskStatus{done, killed}, ""},
		"nobody answers for the run":   {"", []starter.TaskStatus{done}, ""},
	} {
		assert.Equal(t, c.want, endedWell(&starter.Status{State: c.state, Tasks: c.tasks}), name)
	}
}

func TestPrepareHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	own := must.Get(os.Hostname())(t)
	s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"localhost:1", "127.0.0.1:2", own + ":3"}}}}
	require.NoError(t, prepareHere(s, runOptions{}))
	assert.Equal(t, dir, s.Dir, "the current directory is filled in")

	s.Tasks[0].Addresses = []string{"localhost:1", "192.0.2.1:2", "elsewhere.example"}
	err := prepareHere(s, runOptions{})
	var usage *cli.UsageError
	require.ErrorAs(t, err, &usage)
	require.Len(t, usage.Problems, 2)
	assert.Contains(t, usage.Problems[0], `tasks[0].addresses[1]: "192.0.2.1" is not this machine`)
	assert.Contains(t, usage.Problems[1], "clusterrun worker --host-name elsewhere.example")
}

func TestPrepareHereRefusesOtherHosts(t *testing.T) {
	for want, hosts := range map[string]spec.Hosts{
		"":                                     {Count: "1", PerHost: new(2), Strategy: spec.StrategySpread, Exclusive: true},
		"hosts.count (or --nnodes) is 2":       {Count: "2"},
		"hosts.count (or --nnodes) is 1:2":     {Count: "1:2"},
		"hosts.per_host is 1, but there are 2": {PerHost: new(1)},
		"hosts.select selects hosts":           {Select: []string{"a"}},
	} {
		err := prepareHere(&spec.RunSpec{Dir: "/", Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}, Hosts: hosts}, runOptions{})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "clusterrun submit")
	}
}

func TestWhatHasChangedSince(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.py", "same", "gone"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("1"), 0o644))
	}
	start := &tasklog.Start{Version: "0.0.1", Dir: dir, Files: tasklog.FilesOf("/bin/sh", []string{"train.py", "same", "gone"}, dir)}
	of := &runrecord.Account{
		Status: &starter.Status{RunID: "a"}, Spec: &spec.RunSpec{},
		Tasks: []runrecord.Task{{Name: "worker-0"}, {Name: "worker-1", Start: start}, {Name: "worker-2", Start: start}},
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte("12"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
	changes := changedHere(of)
	require.Len(t, changes, 3)
	assert.Equal(t, "clusterrun was 0.0.1, and is now "+spec.Version, changes[0])
	assert.Contains(t, changes[1], filepath.Join(dir, "train.py")+" has changed: it had ")
	assert.Contains(t, changes[1], "; now it has 2 bytes and was modified at ")
	assert.Equal(t, filepath.Join(dir, "gone")+": no such file or directory", changes[2])

	start.Dir = filepath.Join(dir, "nosuch")
	assert.Contains(t, changedHere(of), "the directory "+start.Dir+": no such file or directory")
}
