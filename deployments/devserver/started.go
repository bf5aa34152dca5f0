package devserver

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/testing/testhooks"
	"google.golang.org/grpc"
)

// Matching hands a task to a worker in two steps. It makes history record that the task has
// started, and then answers the worker's poll. It waits one second for history
// (recordTaskStartedSyncMatchTimeout). If the machine is busy for longer, history records the
// start, but its answer comes too late. Matching then offers the task again, history reports that
// it has already started, and Matching drops it. No worker has the task, and only its timeout
// brings it back, after 10 seconds for a workflow task and 20 or more for an activity. Therefore,
// this server waits longer for the answer. This is harmless, since each caller that waits has its
// own limit.

// startBoundOfTask limits this wait.
const startBoundOfTask = 10 * time.Second

// patientClients makes the clients that the server's services use to call each other.
type patientClients struct{ client.FactoryProvider }

func (p patientClients) NewFactory(
	rpc common.RPCFactory, monitor membership.Monitor, handler metrics.Handler, dc *dynamicconfig.Collection,
	hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger,
) client.Factory {
	return patientFactory{p.FactoryProvider.NewFactory(rpc, monitor, handler, dc, hooks, shards, logger, throttled)}
}

type patientFactory struct{ client.Factory }

func (f patientFactory) NewHistoryClientWithTimeout(timeout time.Duration) (historyservice.HistoryServiceClient, error) {
	c, err := f.Factory.NewHistoryClientWithTimeout(timeout)
	return patientHistory{c}, err
}

type patientHistory struct {
	historyservice.HistoryServiceClient
}

func (h patientHistory) RecordWorkflowTaskStarted(ctx context.Context, r *historyservice.RecordWorkflowTaskStartedRequest, o ...grpc.CallOption) (*historyservice.RecordWorkflowTaskStartedResponse, error) {
	ctx, cancel := withDeadline(ctx, startBoundOfTask)
	defer cancel()
	return h.HistoryServiceClient.RecordWorkflowTaskStarted(ctx, r, o...)
}

func (h patientHistory) RecordActivityTaskStarted(ctx context.Context, r *historyservice.RecordActivityTaskStartedRequest, o ...grpc.CallOption) (*historyservice.RecordActivityTaskStartedResponse, error) {
	ctx, cancel := withDeadline(ctx, startBoundOfTask)
	defer cancel()
	return h.HistoryServiceClient.RecordActivityTaskStarted(ctx, r, o...)
}

// withDeadline returns the context with another deadline, which may be later. It is still canceled
// with the original context.
func withDeadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel()
		}
	})
	return later, func() {
		stop()
		cancel()
	}
}
