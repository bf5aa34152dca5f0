package workers

import (
	"context"
	"sync"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// askedTimes records, for each activity that this side must answer, when the server was asked for
// it. It maps the activity's token to nanoseconds of CLOCK_BOOTTIME.
type askedTimes struct{ times sync.Map }

// intercept records each activity that the server hands out before the activity starts, and forgets
// it when the server has accepted an answer or no longer needs one.
func (a *askedTimes) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	sent := supervisor.BootNanos()
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil {
		a.received(reply, sent)
	}
	if err == nil || answered(err) {
		switch r := req.(type) {
		case *workflowservice.RespondActivityTaskCompletedRequest:
			a.times.Delete(string(r.GetTaskToken()))
		case *workflowservice.RespondActivityTaskFailedRequest:
			a.times.Delete(string(r.GetTaskToken()))
		case *workflowservice.RespondActivityTaskCanceledRequest:
			a.times.Delete(string(r.GetTaskToken()))
		}
	}
	return err
}

// at returns when the server was asked for the activity with the token, in nanoseconds of
// CLOCK_BOOTTIME, or 0 if that is unknown. The server handed out the activity after that time.
func (a *askedTimes) at(token []byte) int64 {
	sent, _ := a.times.Load(string(token))
	at, _ := sent.(int64)
	return at
}

func (a *askedTimes) received(reply any, sent int64) {
	switch r := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		if token := r.GetTaskToken(); len(token) > 0 {
			a.times.Store(string(token), sent)
		}
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		for _, task := range r.GetActivityTasks() {
			a.received(task, sent)
		}
	}
}

// answered reports whether an error means that the server no longer needs an answer.
func answered(err error) bool {
	c := serviceerror.ToStatus(err).Code()
	return c == codes.NotFound || c == codes.InvalidArgument
}
