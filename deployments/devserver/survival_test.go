package devserver

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// A run continues after its server was killed, on the same address, with the same
// worker and a client that waited all the time.
func TestRunsSurviveAKilledServer(t *testing.T) {
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

	p.kill()
	again := startCommand(t, command("--json", "--headless", "--db", path, "--port", portOf(t, p.ready.Address)))
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

// Commands that wait survive a clean stop: they find the next server.
func TestWaitingClientsSurviveACleanStop(t *testing.T) {
	path := testFile(t)
	p := start(t, "--db", path)
	c := p.client()
	startWorker(t, c, func(r worker.Registry) { r.RegisterWorkflow(awaitSignal) })
	run := startWorkflow(t, c, awaitSignal)
	var result string
	done := make(chan error, 1)
	go func() { done <- run.Get(context.Background(), &result) }()

	asked := time.Now()
	p.signal(syscall.SIGTERM)
	require.Equal(t, ExitOK, p.await())
	assert.Less(t, time.Since(asked), 10*time.Second)

	again := startCommand(t, command("--json", "--headless", "--db", path, "--port", portOf(t, p.ready.Address)))
	require.NoError(t, again.client().SignalWorkflow(context.Background(), run.GetID(), "", "go", "on"))
	select {
	case err := <-done:
		require.NoError(t, err)
		assert.Equal(t, "on", result)
	case <-time.After(patience):
		require.FailNow(t, "the client does not get its result", "%s", again.stderr)
	}
}

func portOf(t *testing.T, address string) string {
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

func TestMemoryForgets(t *testing.T) {
	p := start(t)
	run := startWorkflow(t, p.client(), "nobody serves this")
	p.signal(syscall.SIGTERM)
	require.Equal(t, ExitOK, p.await())

	_, err := start(t).client().DescribeWorkflowExecution(context.Background(), run.GetID(), "")
	var notFound *serviceerror.NotFound
	assert.ErrorAs(t, err, &notFound)
}
