package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A host refuses a spec, or runs it, or the run waits for another host.
func TestWhatASpecAsksOfHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.refusedByTheHost(t)
	f.refusedSpecSaysWhy(t)
	f.placement(t)
	f.portsAreLeased(t)
}

// Input that only a host can check is refused there, before anything starts.
func (f *fixture) refusedByTheHost(t *testing.T) {
	plain := filepath.Join(f.dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644))
	one := func(command ...string) []spec.TaskGroup {
		return []spec.TaskGroup{{Type: "worker", Count: ptr(2), Command: command}}
	}
	for name, c := range map[string]struct {
		spec *spec.RunSpec
		want string
	}{
		"command not found":     {&spec.RunSpec{Tasks: one("no-such-program")}, "no-such-program on host host-a: command not found"},
		"no execute permission": {&spec.RunSpec{Tasks: one(plain)}, "not executable"},
		"a directory":           {&spec.RunSpec{Tasks: one(f.dir)}, "is a directory"},
		"log dir is a file":     {&spec.RunSpec{Tasks: one("true"), Logs: spec.Logs{Dir: plain}}, "logs.dir: " + plain + " is a file"},
		"no working directory":  {&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Dir: "/no/such/dir", Command: []string{"true"}}}}, "/no/such/dir on host host-a: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			f.t = t
			run := f.start(c.spec)
			err := run.Get(t.Context(), nil)
			require.ErrorContains(t, err, spec.ErrInvalidRunSpec)
			require.ErrorContains(t, err, c.want)
			assert.NoDirExists(t, filepath.Join(f.worker.State, "worker", "logs", run.GetID()))
		})
	}
}

// saysWhy checks that all commands about a refused run print the reason.
func (f *fixture) saysWhy(run client.WorkflowRun, why string) {
	f.t.Helper()
	for _, command := range []string{"status", "show"} {
		stdout := f.OK(f.t, command, run.GetID())
		assert.Contains(f.t, stdout, why, command)
	}
	assert.Contains(f.t, f.Fails(f.t, 125, "logs", run.GetID()), "was refused and has started nothing")
	waited, _, stderr := f.CLI(f.t, "wait", run.GetID())
	assert.Contains(f.t, stderr, why)
	stdout := f.OK(f.t, "list", "--json", "--name", run.GetID())
	listed := must.JSON[[]starter.Summary](f.t, stdout)
	require.Len(f.t, listed, 1)
	assert.Equal(f.t, waited, listed[0].ExitCode)
	answer := must.Get(f.client.QueryWorkflow(f.t.Context(), run.GetID(), run.GetRunID(), spec.QueryStatus))(f.t)
	var s spec.Status
	require.NoError(f.t, answer.Get(&s))
	assert.Equal(f.t, spec.RunEnded, s.State)
	require.NotNil(f.t, s.Result)
	assert.Contains(f.t, s.Result.Message, why)
	assert.Equal(f.t, spec.ErrInvalidRunSpec, s.Result.ErrorType)
}

// A spec that no version of clusterrun accepts is refused with the reason, too, if another
// client has started it.
func (f *fixture) refusedSpecSaysWhy(t *testing.T) {
	f.t = t
	run, err := f.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "refused", TaskQueue: spec.TaskQueue}, spec.WorkflowType,
		map[string]any{"comand": []string{"true"}})
	require.NoError(t, err)
	require.ErrorContains(t, run.Get(t.Context(), nil), spec.ErrInvalidRunSpec)
	f.saysWhy(run, "comand")
}

func (f *fixture) placement(t *testing.T) {
	f.t = t
	t.Run("an address without a worker", func(t *testing.T) {
		f.t = t
		started := time.Now()
		r := f.result(f.start(&spec.RunSpec{PlacementTimeout: spec.DurationOf(2 * time.Second), Tasks: []spec.TaskGroup{
			group("worker", 1, "true"), {Type: "ps", Addresses: []string{"nowhere:2222"}, Command: []string{"true"}}}}))
		assert.Equal(t, spec.ErrPlacement, r.ErrorType)
		assert.Contains(t, r.Message, "worker-0, ps-0 could not be placed: waited for 2 slots: no host worker has joined as \"nowhere\"; the queue has host-a")
		assert.Contains(t, r.Message, "clusterrun worker")
		assert.Equal(t, 125, r.ExitCode)
		assert.GreaterOrEqual(t, time.Since(started), 2*time.Second)
	})
	t.Run("an address of this host", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
			group("worker", 1, `echo "$TF_CONFIG" > $DIR/tf`), {Type: "ps", Addresses: []string{"host-a:28222"}, Command: []string{"true"}}}}))
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		cluster := must.JSON[struct{ Cluster map[string][]string }](t, f.file("tf"))
		address, port, err := net.SplitHostPort(cluster.Cluster["ps"][0])
		require.NoError(t, err)
		assert.NotNil(t, net.ParseIP(address), "the name is known to clusterrun alone")
		assert.Equal(t, "28222", port)
	})
	t.Run("a port that is taken", func(t *testing.T) {
		f.t = t
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer func() { _ = l.Close() }()
		r := f.result(f.start(&spec.RunSpec{PlacementTimeout: spec.DurationOf(3 * time.Second), Tasks: []spec.TaskGroup{
			{Type: "ps", Addresses: []string{strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)}, Command: []string{"true"}}}}))
		assert.Equal(t, spec.ErrPlacement, r.ErrorType)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		assert.Contains(t, r.Message, port)
	})
}

// Two runs on one machine never get the same port.
func (f *fixture) portsAreLeased(t *testing.T) {
	f.t = t
	// Each look is a process, and forty tasks look.
	script := `echo "$CLUSTERRUN_ADDRESS" >> $DIR/ports; until [ -e $DIR/go ]; do sleep 1; done`
	a := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 20, script)}})
	b := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 20, script)}})
	seen := map[string]bool{}
	harness.Eventually(t, "all have a port", func() bool { return len(strings.Fields(f.file("ports"))) == 40 })
	for _, address := range strings.Fields(f.file("ports")) {
		assert.False(t, seen[address], address)
		seen[address] = true
	}
	touch(t, f, "go")
	assert.Equal(t, spec.VerdictSucceeded, f.result(a).Verdict)
	assert.Equal(t, spec.VerdictSucceeded, f.result(b).Verdict)
}
