package devserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/headers"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := make(chan time.Time, 10)
		u := &usage{limit: time.Minute, onIdle: func() { idle <- time.Now() }}
		started := time.Now()

		u.begin() // before watch
		u.watch()
		time.Sleep(time.Hour)
		assert.Empty(t, idle, "one request is in flight")
		u.begin()
		u.end()
		time.Sleep(time.Hour)
		assert.Empty(t, idle, "one of two still is")
		u.end()
		time.Sleep(30 * time.Second)
		u.begin()
		u.end()
		time.Sleep(59 * time.Second)
		assert.Empty(t, idle, "the clock starts again with each request")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, idle, 1)
		assert.Equal(t, 2*time.Hour+90*time.Second, (<-idle).Sub(started))
	})
}

func TestUsageNeverUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := 0
		u := &usage{limit: time.Minute, onIdle: func() { idle++ }}
		u.watch()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, idle)
	})
}

func TestUsageWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &usage{onIdle: func() { t.Error("nobody asked") }}
		u.watch()
		u.begin()
		u.end()
		time.Sleep(1000 * time.Hour)
	})
}

func TestByClient(t *testing.T) {
	const start = "/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution"
	named := func(name string) context.Context {
		return metadata.NewIncomingContext(context.Background(), metadata.Pairs(headers.ClientNameHeaderName, name))
	}
	in := func(namespace string) any {
		return &workflowservice.StartWorkflowExecutionRequest{Namespace: namespace}
	}
	assert.True(t, byClient(context.Background(), in("default"), start))
	assert.True(t, byClient(named("temporal-go"), in("default"), start))
	assert.True(t, byClient(named("temporal-ui"), in("default"), start))
	assert.False(t, byClient(named(headers.ClientNameServer), in("default"), start), "a system worker, in a user's namespace")
	assert.False(t, byClient(named("temporal-go"), in(systemNamespace), start))
	assert.False(t, byClient(context.Background(), &healthpb.HealthCheckRequest{}, healthpb.Health_Check_FullMethodName))
}

func TestDrainTurnsWaitingIntoUnavailable(t *testing.T) {
	d := newDrain()
	poll := &grpc.UnaryServerInfo{FullMethod: "/temporal.api.workflowservice.v1.WorkflowService/PollActivityTaskQueue"}
	waiting := make(chan struct{})
	go func() { <-waiting; d.begin() }()
	_, err := d.intercept(context.Background(), nil, poll, func(ctx context.Context, _ any) (any, error) {
		close(waiting)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	assert.ErrorContains(t, err, "Unavailable")

	respond := &grpc.UnaryServerInfo{FullMethod: "/temporal.api.workflowservice.v1.WorkflowService/RespondActivityTaskCompleted"}
	_, err = d.intercept(context.Background(), nil, respond, func(ctx context.Context, _ any) (any, error) { return nil, ctx.Err() })
	assert.NoError(t, err, "what is answered at once is left to finish")
}

// The server's own workers poll all the time, even in the user's namespace; nevertheless it exits
// when it has no client, and only then.
func TestIdleExit(t *testing.T) {
	const limit = 2 * time.Second
	p := start(t, "--idle-exit", limit.String())
	c, err := client.Dial(client.Options{HostPort: p.ready.Address, Logger: quiet})
	require.NoError(t, err)
	stop := startWorker(t, c, func(r worker.Registry) { r.RegisterWorkflow(awaitSignal) })
	run := startWorkflow(t, c, awaitSignal)

	select {
	case <-p.exited:
		require.FailNow(t, "it left a worker that polls", "%s", p.stderr)
	case <-time.After(3 * limit):
	}
	require.NoError(t, c.SignalWorkflow(context.Background(), run.GetID(), "", "go", "on"))
	require.NoError(t, awaitResult(t, run, nil))
	stop()
	c.Close()
	assert.Equal(t, ExitOK, p.await())
	assert.Contains(t, p.stderr.String(), "stopped: idle for 2s")
}

func TestIdleExitWhenNobodyEverComes(t *testing.T) {
	p := start(t, "--idle-exit=100ms", "--db", testFile(t))
	assert.Equal(t, ExitOK, p.await())
}
