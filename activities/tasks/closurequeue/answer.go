package closurequeue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Caller is the process that makes a request: a task, and the number of its process. It is zero
// for a program outside the tasks.
type Caller struct {
	Task    string
	Process int
}

// Answer answers a request of a program that schedules closures: an operation of the task API,
// which pools have, too. Its message is JSON. Programs number their requests and
// know their positions in the history, so another client can continue. While the server is away,
// it retries until ctx ends.
func (c *Client) Answer(ctx context.Context, by Caller, operation string, message []byte) (any, *wire.Problem) {
	ask, ok := operations[operation]
	if !ok {
		return nil, &wire.Problem{Code: wire.CodeNotFound, Message: fmt.Sprintf("unknown operation %s; the operations are %s", spec.Quote(operation), shorten.List(wire.Operations, len(wire.Operations)))}
	}
	out, err := ask(ctx, c, by, closure.Escaped(message))
	if err != nil {
		return nil, Problem(err)
	}
	return out, nil
}

// Begin opens the queue for a program. If the program is a process of a task, it releases the
// resources that earlier processes of the task have created.
func (c *Client) Begin(ctx context.Context, by Caller) (out closure.Opened, err error) {
	in, err := c.Opening(by.Task)
	if err != nil {
		return out, err
	}
	var here Position
	err = c.patiently(ctx, "open", func() (err error) {
		if err = c.Open(ctx, in); err == nil {
			here, err = c.Here(ctx)
		}
		return err
	})
	if err == nil {
		err = c.ReleaseBefore(ctx, by)
	}
	return closure.Opened{At: here.String(), Room: FirstRoom(in.QueueSize)}, err
}

// ReleaseBefore releases the resources that processes of the task before this one have created.
// They have ended, and may have been killed.
func (c *Client) ReleaseBefore(ctx context.Context, by Caller) error {
	if by.Process == 0 {
		return nil
	}
	_, err := c.ReleaseResources(ctx, closure.ReleaseRequest{Task: by.Task, Process: by.Process})
	if _, ok := errors.AsType[*closure.RefusedError](err); ok {
		return nil // the run has ended, and its resources with it
	}
	return err
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

// operations are the requests of programs.
var operations = map[string]func(ctx context.Context, c *Client, by Caller, message []byte) (any, error){
	wire.OpOpen:     func(ctx context.Context, c *Client, by Caller, _ []byte) (any, error) { return c.Begin(ctx, by) },
	wire.OpSchedule: forward((*Client).Schedule),
	wire.OpJoin:     forward((*Client).Join),
	wire.OpDone:     forward((*Client).Done),
	wire.OpResources: operation(func(ctx context.Context, c *Client, by Caller, in closure.ResourceRequest) (closure.ResourceAnswer, error) {
		in.Task, in.Process = by.Task, by.Process
		return c.CreateResource(ctx, in)
	}),
	wire.OpRelease: operation(func(ctx context.Context, c *Client, _ Caller, in closure.ReleaseRequest) (closure.ReleaseAnswer, error) {
		if in.Task != "" {
			return closure.ReleaseAnswer{}, &strictjson.Error{Path: "task", Message: "leave it out; it is for hosts, about ended tasks"}
		}
		return c.ReleaseResources(ctx, in)
	}),
	wire.OpCancel:   forward((*Client).Cancel),
	wire.OpOutcomes: operation(outcomes),
	wire.OpFind:     operation(find),
}

// operation decodes and checks the message of an operation.
func operation[Q interface{ Validate() error }, A any](ask func(context.Context, *Client, Caller, Q) (A, error)) func(context.Context, *Client, Caller, []byte) (any, error) {
	return func(ctx context.Context, c *Client, by Caller, message []byte) (any, error) {
		var in Q
		if len(message) > 0 {
			if err := strictjson.Decode(message, &in); err != nil {
				return nil, err
			}
		}
		if err := in.Validate(); err != nil {
			return nil, err
		}
		return ask(ctx, c, by, in)
	}
}

// forward returns the operation that only asks the queue.
func forward[Q interface{ Validate() error }, A any](ask func(*Client, context.Context, Q) (A, error)) func(context.Context, *Client, Caller, []byte) (any, error) {
	return operation(func(ctx context.Context, c *Client, _ Caller, in Q) (A, error) { return ask(c, ctx, in) })
}

func outcomes(ctx context.Context, c *Client, _ Caller, in closure.OutcomesRequest) (closure.Outcomes, error) {
	out, err := c.feeds.next(ctx, in.Client, in.After, time.Duration(in.Wait*float64(time.Second)))
	if !in.Tuples {
		out.Outcomes = plain(out.Outcomes)
	}
	return out, err
}

func find(ctx context.Context, c *Client, _ Caller, in closure.FindRequest) (closure.Found, error) {
	found, err := c.Find(ctx, in.Closures...)
	out := closure.Found{Outcomes: []closure.Outcome{}}
	for _, o := range found {
		out.Outcomes = append(out.Outcomes, o)
	}
	if !in.Tuples {
		out.Outcomes = plain(out.Outcomes)
	}
	return out, err
}

// plain returns outcomes whose values have lists instead of tuples. It returns copies: the
// program may ask for the same outcomes again.
func plain(all []closure.Outcome) []closure.Outcome {
	out := make([]closure.Outcome, len(all))
	for i, o := range all {
		o.Value = closure.PlainValue(o.Value)
		out[i] = o
	}
	return out
}
