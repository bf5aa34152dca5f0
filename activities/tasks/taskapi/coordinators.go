package taskapi

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// Queue answers requests from programs that schedule closures. It is a [closurequeue.Client].
type Queue interface {
	// Answer answers an operation with a JSON message. It waits until ctx is done.
	Answer(ctx context.Context, operation string, message []byte) (any, *wire.Problem)
}

// coordinating returns an operation's handler.
func coordinating(operation string) handler {
	return func(r *request) (any, *wire.Problem) {
		if r.server.Queue == nil {
			return nil, &wire.Problem{Code: wire.CodeNotThere, Message: "this host worker has no closures that its tasks could schedule"}
		}
		message, problem := r.body(maxClosures)
		if problem != nil {
			return nil, problem
		}
		e := r.endpoint
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(e.ended, cancel)()
		var out any
		queue, err := r.server.Queue(ctx, e.id)
		if err != nil {
			problem = closurequeue.Problem(err)
		} else {
			out, problem = queue.Answer(ctx, operation, message)
		}
		if over := context.Cause(e.ended); over != nil {
			return nil, &wire.Problem{Code: wire.CodeOver, Message: over.Error()}
		}
		return out, problem
	}
}
