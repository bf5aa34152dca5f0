package taskapi

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// postCoordinator answers a program that schedules closures.
func postCoordinator(r *request) (any, *wire.Problem) {
	if r.server.Queue == nil {
		return nil, &wire.Problem{Code: wire.CodeNotThere, Message: "this host worker does not let its tasks schedule closures"}
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
		out, problem = closurequeue.Answer(ctx, queue, message)
	}
	if over := context.Cause(e.ended); over != nil {
		return nil, &wire.Problem{Code: wire.CodeOver, Message: over.Error()}
	}
	return out, problem
}
