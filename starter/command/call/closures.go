package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// exitClosure is the exit code for a closure that failed, which is a mistake of the program.
const exitClosure = 3

const exitCodesOfClosures = `Exit codes:
  0    done
  2    mistake in the command line
  3    a closure failed; its error is on stderr
  124  the --timeout passed
  125  the server, or the queue, could not do it`

// attach opens the queue of a run's closures: [starter.Run.Closures] for commands that schedule
// closures, and [starter.Run.ExistingClosures] for others.
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

// withQueue connects to the queue of a run's closures.
func withQueue(ctx context.Context, a *cli.App, run string, how access, do func(context.Context, *closurequeue.Queue) error) error {
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
			a.Say("that is over, the run goes on")
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
		return closuresEnded(ctx, r)
	}
	if err != nil && nobody != nil && ctx.Err() == nil && (!how.waits || !errors.Is(limited.Err(), context.DeadlineExceeded)) && !isAnswer(err) {
		return nobody
	}
	return closureError(ctx, limited, how.timeout, err)
}

// closuresEnded returns the error for a run that has ended. It includes the outcome, and how to
// get the values.
func closuresEnded(ctx context.Context, r *starter.Run) error {
	how := ""
	if s, err := r.Status(ctx); err == nil && s.Result != nil {
		how = fmt.Sprintf(" (%s)", s.Result.Verdict)
	}
	return fmt.Errorf("run %s has ended%s, and its queue of closures with it; `clusterrun fetch %s ID` still has the values", r.ID, how, r.ID)
}

// isAnswer reports whether an error is the answer of a queue, as opposed to a failure of the
// request.
func isAnswer(err error) bool {
	var refused *closure.RefusedError
	return isClosureError(err) || errors.As(err, &refused)
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
			text = fmt.Sprintf("closure %d: %s", failed.Closure, text)
		}
		if failed.Traceback != "" {
			text = strings.TrimRight(failed.Traceback, "\n") + "\n" + text
		}
		return &cli.ExitError{Code: exitClosure, Cause: errors.New(text)}
	case errors.As(err, &refused):
		return cli.Usagef("%s", closure.Renamed(refused, flagOf))
	case ctx.Err() == nil && limited.Err() != nil:
		return &cli.ExitError{Code: exitcode.Timeout, Cause: fmt.Errorf("not done within %s", timeout)}
	}
	return err
}

func Closures(a *cli.App) *cobra.Command {
	var o closuresOptions
	cmd := &cobra.Command{
		Use:   "closures [flags] RUN",
		Short: "Show the closure queue of a run and the tasks that serve it, pause it, or cancel closures",
		Long: `Shows how many closures are queued, assigned to a host, executing and done, the error that
the next schedule, join or done will raise, the closures that no task serves, and the tasks
that serve. Hosts are assigned more closures than they execute, and report after a moment
how many of them execute. A flag changes the queue first.

` + cli.ExitCodesOfRequests,
		Example: `  clusterrun closures iris-x2k4
  clusterrun closures iris-x2k4 --pause "new data at noon"
  clusterrun closures iris-x2k4 --resume
  clusterrun closures iris-x2k4 --cancel 17,18
  clusterrun closures --json iris-x2k4 | jq .counts`,
		Args: cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return runClosures(cmd.Context(), a, cmd, args, &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.pause, "pause", "", "assign no more closures until --resume, because of `REASON`; executing ones continue")
	f.BoolVar(&o.resume, "resume", false, "end a pause")
	f.UintSliceVar(&o.cancel, "cancel", nil, "cancel the closures with these `IDS`")
	f.BoolVar(&o.cancelAll, "cancel-all", false, "cancel all closures")
	return cmd
}

// closuresOptions are the flags of [Closures].
type closuresOptions struct {
	pause     string
	resume    bool
	cancel    []uint
	cancelAll bool
}

// runClosures implements [Closures].
func runClosures(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *closuresOptions) error {
	pausing := cmd.Flags().Changed("pause")
	if pausing && o.resume {
		return cli.Usagef("--pause and --resume contradict each other; give one")
	}
	attach := existing
	if pausing { // no closure may have been scheduled yet
		attach = opened
	}
	return withQueue(ctx, a, args[0], access{attach: attach, timeout: cli.RequestTimeout}, func(ctx context.Context, q *closurequeue.Queue) error {
		var err error
		switch {
		case pausing:
			_, err = q.Pause(ctx, o.pause)
		case o.resume:
			_, err = q.Resume(ctx)
		}
		if err != nil {
			return err
		}
		if len(o.cancel) > 0 || o.cancelAll {
			if err := cancelClosures(ctx, a, q, o.cancel, o.cancelAll); err != nil {
				return err
			}
		}
		s, err := q.Status(ctx)
		if err != nil {
			return err
		}
		if a.Global.JSON {
			return a.PrintJSON(s)
		}
		printQueue(a, args[0], s)
		return nil
	})
}

func cancelClosures(ctx context.Context, a *cli.App, q *closurequeue.Queue, ids []uint, all bool) error {
	var which []uint64
	if !all {
		for _, id := range ids {
			which = append(which, uint64(id))
		}
	}
	if len(which) > 0 { // the queue ignores unknown IDs
		s, err := q.Status(ctx)
		if err != nil {
			return err
		}
		for _, id := range which {
			if id == 0 || id > s.Counts.Scheduled {
				return cli.Usagef("--cancel: there is no closure %d; %d were scheduled, and their IDs begin at 1", id, s.Counts.Scheduled)
			}
		}
	}
	answer, err := q.Cancel(ctx, which...)
	if err == nil {
		a.Say("%s", cancelledLine(answer.Cancelled, answer.Told))
	}
	return err
}

func printQueue(a *cli.App, run string, s closure.QueueStatus) {
	fmt.Fprintf(a.Out, "queue of run %s: %s", run, s.State)
	if s.Paused != "" {
		fmt.Fprintf(a.Out, " (%s)", s.Paused)
	}
	c := s.Counts
	fmt.Fprintf(a.Out, "\n%d scheduled: %d queued, %d given out, %d executing, %d finished, %d failed, %d cancelled; %d calls\n",
		c.Scheduled, c.Queued, c.GivenOut, c.Executing, c.Finished, c.Failed, c.Cancelled, c.Calls)
	if s.Error != nil {
		fmt.Fprintf(a.Out, "error of closure %d, to be raised by the next schedule, join or done: %s\n", s.Error.Closure, s.Error.Error())
	}
	if s.State == closure.QueueEnded {
		return
	}
	for _, u := range s.Unserved {
		fmt.Fprintln(a.Out, unservedLine(u))
	}
	if len(s.Workers) == 0 {
		fmt.Fprintln(a.Out, "no task serves")
		return
	}
	fmt.Fprintln(a.Out)
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tHOST\tSERVES\tSLOTS\tFUNCTIONS")
	for _, t := range s.Workers {
		serves := "yes"
		if !t.Serving {
			serves = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", t.Task, cli.OrDash(t.Host), serves, t.Slots, cli.OrDash(listFew(t.Functions)))
	}
	w.Flush()
}

// unservedLine describes closures that wait because no task serves them.
func unservedLine(u closure.Unserved) string {
	what := plural.Of(u.Queued, "queued closure waits", "queued closures wait")
	if u.Task != "" {
		return fmt.Sprintf("%s until %s serves: only that task may call %s", what, u.Task, u.Function)
	}
	return fmt.Sprintf("%s until a task serves that has registered %s", what, u.Function)
}

// listFew lists some names and counts the rest.
func listFew(names []string) string {
	const few = 6
	return shorten.List(names, few)
}

// cancelledLine returns a sentence with the number of closures that were cancelled.
func cancelledLine(queued, executing int) string {
	text := "cancelled " + plural.Of(queued, "queued closure", "queued closures")
	switch {
	case queued == 0 && executing == 0:
		return "nothing to cancel: none of these closures is queued or executing"
	case executing == 1:
		text += "; 1 that executes was told to end"
	case executing > 1:
		text += fmt.Sprintf("; %d that execute were told to end", executing)
	}
	return text
}
