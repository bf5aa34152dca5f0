package taskapi

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// Coordinators answer the requests of processes that schedule closures, which are for the
// queue of their run.
type Coordinators interface {
	// Answer answers an operation of [wire.Operations] with its message. process is the number
	// of the calling process among the processes of the task. While the server is away, it
	// retries until ctx ends.
	Answer(ctx context.Context, by runkey.Task, process int, operation string, message []byte) (any, *wire.Problem)
}

// coordinating returns the handler of an operation.
func coordinating(operation string) handler {
	return func(r *request) (any, *wire.Problem) {
		c := r.server.Coordinators
		if c == nil {
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
		out, problem := c.Answer(ctx, e.id, e.view().RestartCount, operation, message)
		if over := context.Cause(e.ended); over != nil {
			return nil, &wire.Problem{Code: wire.CodeOver, Message: over.Error()}
		}
		return out, problem
	}
}
