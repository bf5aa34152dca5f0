package devserver

import (
	"context"
	"path"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// drain ends waiting requests when the server stops. A worker is always polling, so without drain
// each stop would take the full second that the frontend allows for open requests.
type drain struct {
	stopping context.Context
	begin    context.CancelFunc
}

func newDrain() *drain {
	ctx, cancel := context.WithCancel(context.Background())
	return &drain{stopping: ctx, begin: cancel}
}

// intercept returns a frontend interceptor.
func (d *drain) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if !waits(info.FullMethod) {
		return next(ctx, req)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.stopping, cancel)()

	resp, err := next(ctx, req)
	if err != nil && d.stopping.Err() != nil {
		// Clients treat "canceled" as final, but not this error, so the client retries and finds
		// the next server.
		return nil, status.Error(codes.Unavailable, "the server is stopping")
	}
	return resp, err
}

// waits reports whether a request may wait for actions of other clients. Other requests are
// answered immediately, and may finish.
func waits(method string) bool {
	name := path.Base(method)
	switch name {
	case "GetWorkflowExecutionHistory", "QueryWorkflow", "UpdateWorkflowExecution", "ExecuteMultiOperation":
		return true
	}
	return strings.HasPrefix(name, "Poll")
}
