package closurequeue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Service answers the requests of programs that schedule closures on the tasks of a run: the
// operations of the task API, which `clusterrun call pipe` has, too. It keeps only news that
// it has read ahead. Everything else is in the queue and in the programs, which number their
// requests and know their positions in the history, so another service can continue.
type Service struct {
	*Client
	// Tasks are the tasks that closures may ask for.
	Tasks *Tasks
	feeds feeds
}

// NewService returns a service for a queue that exists.
func NewService(c *Client, tasks *Tasks) *Service {
	return &Service{Client: c, Tasks: tasks, feeds: feeds{client: c}}
}

// OpenService opens the queue of a run as [Open] does, and returns the service that answers a
// program.
func OpenService(ctx context.Context, s Server, taskQueue string, in closure.QueueInput, tasks TaskNames) (*Service, closure.Opened, error) {
	c := NewClient(s, in.Run)
	c.TaskQueue, c.Warn = taskQueue, warnByLog(c)
	if err := c.Open(ctx, in); err != nil {
		return nil, closure.Opened{}, err
	}
	out := NewService(c, NewTasks(tasks))
	opened, err := out.Opened(ctx, in)
	return out, opened, err
}

func warnByLog(c *Client) func(string, error) {
	return func(request string, err error) {
		slog.Warn("a request to the call queue keeps failing; retrying", "queue", c.id, "request", request, "error", err)
	}
}

// Opened describes the queue, which was opened with this input.
func (s *Service) Opened(ctx context.Context, in closure.QueueInput) (closure.Opened, error) {
	here, err := s.Here(ctx)
	return closure.Opened{At: here.String(), Room: FirstRoom(in.QueueSize)}, err
}

// Close ends reading ahead.
func (s *Service) Close() { s.feeds.close() }

// Caller is the process that makes a request: a task, and the number of its process. It is zero
// for a program outside the tasks.
type Caller struct {
	Task    string
	Process int
}

// Answer answers a request, whose message is JSON. While the server is away, it retries until
// ctx ends.
func (s *Service) Answer(ctx context.Context, by Caller, operation string, message []byte) (any, *wire.Problem) {
	ask, ok := operations[operation]
	if !ok {
		return nil, &wire.Problem{Code: wire.CodeNotFound, Message: fmt.Sprintf("unknown operation %s; the operations are %s", spec.Quote(operation), shorten.List(wire.Operations[1:], len(wire.Operations)))}
	}
	out, err := ask(ctx, s, by, closure.Escaped(message))
	if err != nil {
		return nil, Problem(err)
	}
	return out, nil
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

// operations are the requests that a service answers, except opening a queue, which the owner
// of the service does.
var operations = map[string]func(ctx context.Context, s *Service, by Caller, message []byte) (any, error){
	wire.OpSchedule: operation(func(ctx context.Context, s *Service, _ Caller, in closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
		if err := s.Tasks.Check(ctx, in.Closures...); err != nil {
			return closure.ScheduleAnswer{}, err
		}
		return s.Schedule(ctx, in)
	}),
	wire.OpJoin: forward((*Client).Join),
	wire.OpDone: forward((*Client).Done),
	wire.OpResources: operation(func(ctx context.Context, s *Service, by Caller, in closure.ResourceRequest) (closure.ResourceAnswer, error) {
		in.Task, in.Process = by.Task, by.Process
		return s.CreateResource(ctx, in)
	}),
	wire.OpRelease: operation(func(ctx context.Context, s *Service, _ Caller, in closure.ReleaseRequest) (closure.ReleaseAnswer, error) {
		if in.Task != "" {
			return closure.ReleaseAnswer{}, &strictjson.Error{Path: "task", Message: "leave it out; it is for hosts, about ended tasks"}
		}
		return s.ReleaseResources(ctx, in)
	}),
	wire.OpCancel:   forward((*Client).Cancel),
	wire.OpOutcomes: operation(outcomes),
	wire.OpFind:     operation(find),
}

// operation decodes and checks the message of an operation.
func operation[Q interface{ Validate() error }, A any](ask func(context.Context, *Service, Caller, Q) (A, error)) func(context.Context, *Service, Caller, []byte) (any, error) {
	return func(ctx context.Context, s *Service, by Caller, message []byte) (any, error) {
		var in Q
		if len(message) > 0 {
			if err := strictjson.Decode(message, &in); err != nil {
				return nil, err
			}
		}
		if err := in.Validate(); err != nil {
			return nil, err
		}
		return ask(ctx, s, by, in)
	}
}

// forward returns the operation that only asks the queue.
func forward[Q interface{ Validate() error }, A any](ask func(*Client, context.Context, Q) (A, error)) func(context.Context, *Service, Caller, []byte) (any, error) {
	return operation(func(ctx context.Context, s *Service, _ Caller, in Q) (A, error) { return ask(s.Client, ctx, in) })
}

func outcomes(ctx context.Context, s *Service, _ Caller, in closure.OutcomesRequest) (closure.Outcomes, error) {
	out, err := s.feeds.next(ctx, in.Client, in.After, time.Duration(in.Wait*float64(time.Second)))
	if !in.Tuples {
		out.Outcomes = plain(out.Outcomes)
	}
	return out, err
}

func find(ctx context.Context, s *Service, _ Caller, in closure.FindRequest) (closure.Found, error) {
	found, err := s.Find(ctx, in.Closures...)
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
