package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// maxAhead bounds the calls whose IDs or values are not printed yet.
const maxAhead = 20_000

// schedule puts calls into the queue and prints their IDs, or their values, in their order.
// If there are several errors, it returns the cause of the others.
func schedule(ctx context.Context, a *cli.App, q *closurequeue.Queue, next func() (closure.Closure, error), s scheduling) error {
	err := scheduleEach(ctx, a, q, next, s.wait)
	if raised := q.Raised(); raised != nil {
		return raised
	}
	if s.wait && !s.detached && isClosureError(err) {
		// Otherwise the queue would report the same error to its next client, and keep the
		// queued closures.
		if raised := q.Join(ctx); isClosureError(raised) {
			return raised
		}
	}
	return err
}

// scheduleEach schedules and prints calls until it fails to read one, or the queue returns
// an error. It handles the calls before that, and returns the error.
func scheduleEach(ctx context.Context, a *cli.App, q *closurequeue.Queue, next func() (closure.Closure, error), wait bool) error {
	remotes := make(chan *closurequeue.Remote, maxAhead)
	printed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		err := printClosures(ctx, a, remotes, wait)
		if err != nil {
			cancel()
		}
		printed <- err
	}()
	failure := scheduleInto(ctx, remotes, q, next)
	close(remotes)
	err := <-printed
	if err == nil || isCancelled(err) && isClosureError(failure) {
		return failure
	}
	return err
}

func scheduleInto(ctx context.Context, remotes chan<- *closurequeue.Remote, q *closurequeue.Queue, next func() (closure.Closure, error)) error {
	for {
		c, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := q.Schedule(ctx, c)
		if err != nil {
			return err
		}
		select {
		case remotes <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func printClosures(ctx context.Context, a *cli.App, remotes <-chan *closurequeue.Remote, wait bool) error {
	for r := range remotes {
		id, err := r.ID(ctx)
		if err != nil {
			return err
		}
		if !wait {
			select {
			case <-r.Done():
				// It was refused, or cancelled with the queue, so it will never have a value.
				if _, err := r.Value(); err != nil && isCancelled(err) {
					return err
				}
			default:
			}
		}
		switch {
		case wait:
			value, err := r.Wait(ctx)
			if err != nil {
				return err
			}
			err = printValue(a, id, value)
			if err != nil {
				return err
			}
		case a.Global.JSON:
			if err := printLine(a, map[string]any{"id": id}); err != nil {
				return err
			}
		default:
			if _, err := fmt.Fprintln(a.Out, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func isClosureError(err error) bool {
	return starter.IsError[*closure.Error](err)
}

func isCancelled(err error) bool {
	e, ok := errors.AsType[*closure.Error](err)
	return ok && e.Kind == closure.ErrCancelled
}

// printValue prints the value of a closure. It is JSON with or without --json.
func printValue(a *cli.App, id uint64, value json.RawMessage) error {
	if a.Global.JSON {
		return printLine(a, map[string]any{"id": id, "value": value})
	}
	_, err := fmt.Fprintln(a.Out, string(value))
	return err
}

// printLine prints JSON on one line, so that each of many values has its own.
func printLine(a *cli.App, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, string(b))
	return err
}
