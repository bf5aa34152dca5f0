package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"
)

func TestReadyFileComesWithTheServerAndGoesWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	before := time.Now()
	p := start(t, "--ready-file", path)

	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	var r Ready
	require.NoError(t, json.Unmarshal(doc, &r))
	assert.Equal(t, p.ready, r, "line and file say the same")
	assert.Equal(t, p.cmd.Process.Pid, r.PID)
	assert.Equal(t, "default", r.Namespace)
	assert.Regexp(t, `^127\.0\.0\.1:\d+$`, r.Address)
	assert.Empty(t, r.UI, "headless")
	assert.NotEmpty(t, r.Server)
	assert.WithinRange(t, r.Started, before, time.Now())
	p.client()

	p.signal(syscall.SIGTERM)
	assert.Equal(t, ExitOK, p.await())
	assert.False(t, exists(path))
	assert.Equal(t, "clusterrun-devserver: stopped: signal: terminated\n", p.stderr.String(),
		"a stop is quiet, although the services find each other gone")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left)

	// A killed server leaves a stale file, which the next server replaces.
	start(t, "--ready-file", path).kill()
	require.True(t, exists(path))
	p = start(t, "--ready-file", path)
	doc, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(doc, &r))
	assert.Equal(t, p.cmd.Process.Pid, r.PID)

	// Another server's file is left.
	require.NoError(t, os.WriteFile(path, []byte(`{"pid": 1}`), 0o600))
	p.signal(syscall.SIGINT)
	assert.Equal(t, ExitOK, p.await())
	assert.Contains(t, p.stderr.String(), "stopped: signal: interrupt")
	assert.True(t, exists(path))
}

func TestReadyFileThatCannotBeWrittenFailsTheStart(t *testing.T) {
	says := refused(t, ExitFailure, "--port=0", "--headless", "--ready-file", filepath.Join(t.TempDir(), "missing", "ready.json"))
	assert.Contains(t, says, "--ready-file")
	assert.Contains(t, says, "create the directory")
}

func TestReadyMeansThatTheWebUIAnswers(t *testing.T) {
	p := startCommand(t, command(t, "--json", "--port=0", "--ui-port=0"))
	for _, path := range []string{"/", "/api/v1/namespaces/default/workflows"} {
		resp, err := http.Get(p.ready.UI + path)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Equal(t, http.StatusOK, resp.StatusCode, path)
	}
}

func TestIPv6(t *testing.T) {
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("this machine has no IPv6")
	}
	p := startCommand(t, command(t, "--json", "--ip=::1", "--port=0", "--ui-port=0"))
	assert.Regexp(t, `^\[::1\]:\d+$`, p.ready.Address)
	p.client()
	resp, err := http.Get(p.ready.UI)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
}

// A run continues after its server was stopped, and after it was killed, on the same address, with
// the same worker and a client that waited all the time.
func TestRunsSurviveTheirServer(t *testing.T) {
	path := testFile(t)
	p := start(t, "--db", path)
	var steps atomic.Int32
	step := func(context.Context) error { steps.Add(1); return nil }
	wf := func(ctx workflow.Context) (string, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
		if err := workflow.ExecuteActivity(ctx, "step").Get(ctx, nil); err != nil {
			return "", err
		}
		var s string
		workflow.GetSignalChannel(ctx, "go").Receive(ctx, &s)
		return s, workflow.ExecuteActivity(ctx, "step").Get(ctx, nil)
	}
	c := p.client()
	startWorker(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(wf, workflow.RegisterOptions{Name: "survivor"})
		r.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: "step"})
	})
	run := startWorkflow(t, c, "survivor")
	require.Eventually(t, func() bool { return steps.Load() == 1 }, patience, time.Millisecond)
	var result string
	done := make(chan error, 1)
	go func() { done <- run.Get(context.Background(), &result) }()

	again := p
	for _, end := range []func(*process){func(p *process) { p.signal(syscall.SIGTERM); require.Equal(t, ExitOK, p.await()) }, (*process).kill} {
		end(again)
		again = startCommand(t, command(t, "--json", "--headless", "--db", path, "--port", portOf(t, p.ready.Address)))
	}
	require.NoError(t, again.client().SignalWorkflow(context.Background(), run.GetID(), "", "go", "on"))
	select {
	case err := <-done:
		require.NoError(t, err)
		assert.Equal(t, "on", result)
		assert.Equal(t, int32(2), steps.Load(), "what was done is not done again")
	case <-time.After(patience):
		require.FailNow(t, "the run did not go on", "%s", again.stderr)
	}
}

func portOf(t *testing.T, address string) string {
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

func TestNobodyReadsTheOutput(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd := command(t, "--json", "--port=0", "--headless", "--log-level=debug")
	require.NoError(t, reader.Close())
	p := startCommandTo(t, cmd, writer)
	require.NoError(t, writer.Close())
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is, and the server inherits that
		p.signal(syscall.SIGHUP)
	} else {
		p.signal(syscall.SIGTERM)
	}
	assert.Equal(t, ExitOK, p.await())
}

func TestSignalDuringTheStart(t *testing.T) {
	db := testFile(t)
	ready := filepath.Join(filepath.Dir(db), "ready.json")
	cmd := command(t, "--port=0", "--headless", "--db", db, "--ready-file", ready)
	p := &process{t: t, cmd: cmd, stderr: &syncBuffer{}, exited: make(chan struct{})}
	cmd.Stderr = p.stderr
	require.NoError(t, cmd.Start())
	go func() { defer close(p.exited); _ = cmd.Wait() }()
	t.Cleanup(p.kill)
	// The lock is its first trace, long before it is ready; by that time it listens for signals.
	require.Eventually(t, func() bool { return exists(db + ".lock") }, patience, 1)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, ExitOK, p.await(), "%s", p.stderr)
	assert.False(t, exists(ready))

	start(t, "--db", db)
}

func TestLifeline(t *testing.T) {
	ours, theirs, err := pipe()
	require.NoError(t, err)
	cmd := command(t, "--json", "--port=0", "--headless", "--lifeline-fd=3")
	cmd.ExtraFiles = []*os.File{theirs}
	p := startCommand(t, cmd)
	require.NoError(t, theirs.Close())

	_, err = ours.WriteString("what is written is ignored")
	require.NoError(t, err)
	p.client()
	require.True(t, p.running())

	require.NoError(t, ours.Close())
	assert.Equal(t, ExitOK, p.await())
	assert.Contains(t, p.stderr.String(), "its owner has exited")
}

// pipe returns the owner's end, to write to, and the server's end.
func pipe() (owner, server *os.File, err error) {
	server, owner, err = os.Pipe()
	return owner, server, err
}

// The embedded server has the settings that we recommend for other servers.
func TestSampleDynamicConfigMatchesOurs(t *testing.T) {
	sample, err := os.ReadFile(filepath.Join("..", "temporal", "dynamicconfig.yaml"))
	require.NoError(t, err)
	load := func(text []byte) map[string]any {
		l := dynamicconfig.LoadYamlFile(text)
		require.NoError(t, l.Err())
		require.Empty(t, l.Warnings, "Temporal warns of unknown keys and of wrong types")
		values := map[string]any{}
		for key, v := range l.Map {
			require.Len(t, v, 1, key.String())
			values[key.String()] = v[0].Value
		}
		return values
	}
	ours := map[string]any{}
	for key, v := range tuning() {
		ours[key.String()] = v
	}

	values := load(sample)
	assert.Len(t, values, 16)
	const shift = "history.timerprocessormaxtimeshift"
	assert.NotContains(t, values, shift, "dangerous where there are several hosts, so it is commented out")
	all := load(regexp.MustCompile(`(?m)^# (history\.timerProcessorMaxTimeShift:|  - value: "1ms")$`).ReplaceAll(sample, []byte("$1")))
	require.Contains(t, all, shift)
	parsed, err := time.ParseDuration(all[shift].(string))
	require.NoError(t, err)
	all[shift] = parsed
	for key, v := range all {
		assert.Equal(t, ours[key], v, key)
	}
}

func TestNamespace(t *testing.T) {
	path := testFile(t)
	p := start(t, "--db", path, "--namespace", "mine", "--retention", "48h")
	c := p.client()
	ctx := context.Background()
	ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "mine"})
	require.NoError(t, err)
	assert.Equal(t, 48*time.Hour, ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())

	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		TaskQueue: testQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword("ClusterRunOwner").ValueSet("me"),
		),
	}, "nobody serves this")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		found, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: `ClusterRunOwner = "me"`,
		})
		return err == nil && len(found.Executions) == 1 && found.Executions[0].Execution.WorkflowId == run.GetID()
	}, patience, 10*time.Millisecond)

	// Another namespace in the same file; the first keeps its original settings.
	p.kill()
	c = start(t, "--db", path).client()
	for name, retention := range map[string]time.Duration{"mine": 48 * time.Hour, "default": 90 * 24 * time.Hour} {
		ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
		require.NoError(t, err, name)
		assert.Equal(t, retention, ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), name)
	}
}

// With the default settings, retries take at least a second. On a busy machine any retry may be
// late, so the quickest counts.
func TestRetryDelayOfAMillisecondIsNotASecond(t *testing.T) {
	const attempts = 6
	var mu sync.Mutex
	var began []time.Time
	flaky := func(ctx context.Context) error {
		mu.Lock()
		began = append(began, time.Now())
		mu.Unlock()
		if activity.GetInfo(ctx).Attempt < attempts {
			return temporal.NewApplicationErrorWithOptions("again", "again",
				temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond})
		}
		return nil
	}
	wf := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
		return workflow.ExecuteActivity(ctx, "flaky").Get(ctx, nil)
	}
	c := start(t).client()
	startWorker(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(wf, workflow.RegisterOptions{Name: "retries"})
		r.RegisterActivityWithOptions(flaky, activity.RegisterOptions{Name: "flaky"})
	})
	require.NoError(t, awaitResult(t, startWorkflow(t, c, "retries"), nil))
	require.Len(t, began, attempts)
	quickest := time.Hour
	for i := 1; i < attempts; i++ {
		quickest = min(quickest, began[i].Sub(began[i-1]))
	}
	assert.Less(t, quickest, time.Second)
}

// The activity heartbeats only once, before it is canceled, so it can only be notified by a push.
func TestCancellationIsPushed(t *testing.T) {
	running := make(chan struct{})
	told := make(chan struct{})
	wait := func(ctx context.Context) error {
		activity.RecordHeartbeat(ctx)
		close(running)
		<-ctx.Done()
		close(told)
		return ctx.Err()
	}
	wf := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Hour, WaitForCancellation: true,
		})
		return workflow.ExecuteActivity(ctx, "wait").Get(ctx, nil)
	}
	c := start(t).client()
	startWorker(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(wf, workflow.RegisterOptions{Name: "waits"})
		r.RegisterActivityWithOptions(wait, activity.RegisterOptions{Name: "wait"})
	})
	run := startWorkflow(t, c, "waits")
	<-running
	require.NoError(t, c.CancelWorkflow(context.Background(), run.GetID(), ""))
	select {
	case <-told:
	case <-time.After(patience):
		require.FailNow(t, "the activity was not told")
	}
	var canceled *temporal.CanceledError
	assert.True(t, errors.As(awaitResult(t, run, nil), &canceled))
}
