package closurequeue

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Answer answers a request from a program that schedules closures: an operation of the task API,
// also available to pools. Its message is JSON. Programs number their requests, so another client
// can continue. While the server is away, it retries until ctx is done.
func (c *Client) Answer(ctx context.Context, operation string, message []byte) (any, *wire.Problem) {
	ask, ok := operations[operation]
	if !ok {
		return nil, &wire.Problem{Code: wire.CodeNotFound, Message: fmt.Sprintf("unknown operation %s; the operations are %s", spec.Quote(operation), shorten.List(wire.Operations, len(wire.Operations)))}
	}
	out, err := ask(ctx, c, closure.Escaped(message))
	if err != nil {
		return nil, Problem(err)
	}
	return out, nil
}

// Begin opens the queue for a program.
func (c *Client) Begin(ctx context.Context) (closure.Opened, error) {
	in, err := c.Opening()
	if err != nil {
		return closure.Opened{}, err
	}
	err = c.patiently(ctx, "open", func() error { return c.Open(ctx, in) })
	return closure.Opened{Room: FirstRoom(in)}, err
}

// FirstRoom returns how many closures a client may send before the queue has reported its
// capacity. It is 0 for a small queue, which other clients may have filled.
func FirstRoom(in closure.QueueInput) int {
	if size := in.Size(); size >= closure.MaxBatch {
		return size
	}
	return 0
}

// Problem converts an error into the problem that a program receives.
func Problem(err error) *wire.Problem {
	if errors.Is(err, ErrRunEnded) {
		return &wire.Problem{Code: wire.CodeOver, Message: err.Error()}
	}
	if refused := wire.Refused(err); refused != nil {
		return refused
	}
	return &wire.Problem{Code: wire.CodeInternal, Message: err.Error()}
}

// operations maps names to functions.
var operations = map[string]func(ctx context.Context, c *Client, message []byte) (any, error){
	wire.OpOpen:     func(ctx context.Context, c *Client, _ []byte) (any, error) { return c.Begin(ctx) },
	wire.OpSchedule: operation((*Client).Schedule),
	wire.OpJoin:     operation((*Client).Join),
	wire.OpTake:     operation((*Client).Take),
}

// operation decodes and checks an operation's message.
func operation[Q interface{ Validate() error }, A any](ask func(*Client, context.Context, Q) (A, error)) func(context.Context, *Client, []byte) (any, error) {
	return func(ctx context.Context, c *Client, message []byte) (any, error) {
		var in Q
		if err := strictjson.Decode(message, &in); err != nil {
			return nil, err
		}
		if err := in.Validate(); err != nil {
			return nil, err
		}
		return ask(c, ctx, in)
	}
}
