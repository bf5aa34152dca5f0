package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// exitFailed is the exit code for a call that failed, which is a mistake of the program.
const exitFailed = 3

// attach opens the queue of a run's calls: [starter.Run.Closures] for commands that add
// calls, and [starter.Run.ExistingClosures] for others.
type attach func(*starter.Run, context.Context) (*closurequeue.Queue, error)

var (
	opened   attach = (*starter.Run).Closures
	existing attach = (*starter.Run).ExistingClosures
)

// access describes how a command uses a queue.
type access struct {
	attach  attach
	timeout time.Duration // 0 means no limit
	// waits reports whether the command waits while no host worker executes the run, and
	// reports that. Other commands fail then.
	waits bool
}

// attachAgain is the time between tries to get a queue from a server that is away.
var attachAgain = retry.Backoff{First: 100 * time.Millisecond, Most: 2 * time.Second}

// withQueue connects to the queue of a run's calls.
func withQueue(ctx context.Context, a *cli.App, run string, how access, do func(context.Context, *closurequeue.Queue) error) error {
	if how.timeout < 0 {
		return cli.Usagef("--wait-timeout %s: give a time such as 10m", how.timeout)
	}
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	if how.timeout > 0 {
		var stop context.CancelFunc
		limited, stop = context.WithTimeout(limited, how.timeout)
		defer stop()
	}
	r := starter.Get(c, run, "")
	watch := watchWorkers(limited, r.Answers, func(nobody error) {
		switch {
		case nobody == nil:
			a.Say("a host worker answers again; the run continues")
		case how.waits:
			a.Say("%s; waiting", nobody)
		default:
			cancel()
		}
	})
	q, err := how.attach(r, limited)
	for again := attachAgain; how.waits && servererror.IsTransient(err) && again.Sleep(limited) == nil; {
		q, err = how.attach(r, limited)
	}
	if err == nil {
		defer q.Close()
		if how.waits {
			go tellWaits(limited, q.Status, func(text string) { a.Say("run %s: %s", run, text) })
		}
		err = do(limited, q)
	}
	nobody := watch.end()
	if errors.Is(err, closurequeue.ErrRunEnded) {
		return callsEnded(ctx, r)
	}
	if err != nil && nobody != nil && ctx.Err() == nil && (!how.waits || !errors.Is(limited.Err(), context.DeadlineExceeded)) && !isAnswer(err) {
		return nobody
	}
	return closureError(ctx, limited, how.timeout, err)
}

// callsEnded returns the error for a run that has ended. It includes the outcome, and how to
// get the values.
func callsEnded(ctx context.Context, r *starter.Run) error {
	how := ""
	if s, err := r.Status(ctx); err == nil && s.Result != nil {
		how = fmt.Sprintf(" (%s)", s.Result.Verdict)
	}
	return fmt.Errorf("run %s has ended%s, and its queue of calls with it; `clusterrun call get %s ID` still has the values", r.ID, how, r.ID)
}

// isAnswer reports whether an error is the answer of a queue, as opposed to a failure of the
// request.
func isAnswer(err error) bool {
	return isClosureError(err) || starter.IsError[*closure.RefusedError](err)
}

// flagOf returns the flag or argument that sets a field of a closure.
func flagOf(field string) string {
	switch field {
	case "function":
		return "FUNCTION"
	case "args":
		return "ARG"
	case "kwargs":
		return "--kwargs"
	case "options.timeout":
		return "--call-timeout"
	}
	if option, ok := strings.CutPrefix(field, "options."); ok {
		return "--" + option
	}
	return field
}

// closureError returns an error with its exit code.
func closureError(ctx context.Context, limited context.Context, timeout time.Duration, err error) error {
	var (
		failed  *closure.Error
		refused *closure.RefusedError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		text := failed.Error()
		if failed.Closure != 0 {
			text = fmt.Sprintf("call %d: %s", failed.Closure, text)
		}
		if failed.Traceback != "" {
			text = strings.TrimRight(failed.Traceback, "\n") + "\n" + text
		}
		return &cli.ExitError{Code: exitFailed, Cause: errors.New(text)}
	case errors.As(err, &refused):
		return cli.Usagef("%s", closure.Renamed(refused, flagOf))
	case ctx.Err() == nil && limited.Err() != nil:
		return &cli.ExitError{Code: exitcode.Timeout, Cause: fmt.Errorf("not done within %s", timeout)}
	}
	return err
}
