package call

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func listCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list RUN",
		Short: "Show the queue of a run's calls, and the tasks that serve it",
		Args:  cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onQueue(cmd.Context(), a, args[0], existing, func(context.Context, *closurequeue.Queue) error { return nil })
		},
	}
}

// onQueue changes the queue of a run's calls and then shows it.
func onQueue(ctx context.Context, a *cli.App, run string, attach attach, change func(context.Context, *closurequeue.Queue) error) error {
	return withQueue(ctx, a, run, access{attach: attach, timeout: cli.RequestTimeout}, func(ctx context.Context, q *closurequeue.Queue) error {
		if err := change(ctx, q); err != nil {
			return err
		}
		s, err := q.Status(ctx)
		if err != nil {
			return err
		}
		return a.Print(s, func() { printQueue(a, run, s) })
	})
}

func printQueue(a *cli.App, run string, s closure.QueueStatus) {
	fmt.Fprintf(a.Out, "queue of run %s: %s", run, s.State)
	if s.Paused != "" {
		fmt.Fprintf(a.Out, " (%s)", s.Paused)
	}
	c := s.Counts
	fmt.Fprintf(a.Out, "\n%d calls: %d queued, %d given out, %d executing, %d finished, %d failed, %d cancelled; %d attempts\n",
		c.Scheduled, c.Queued, c.GivenOut, c.Executing, c.Finished, c.Failed, c.Cancelled, c.Calls)
	if s.Error != nil {
		fmt.Fprintf(a.Out, "error of call %d, which the next call or wait reports: %s\n", s.Error.Closure, s.Error.Error())
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
	w := cli.NewTable(a.Out, "TASK", "HOST", "SERVES", "SLOTS", "FUNCTIONS")
	for _, t := range s.Workers {
		serves := "yes"
		if !t.Serving {
			serves = "no"
		}
		w.Row(t.Task, cli.OrDash(t.Host), serves, t.Slots, cli.OrDash(shorten.List(t.Functions, 6)))
	}
	w.Flush()
}

// unservedLine describes calls that wait because no task serves them.
func unservedLine(u closure.Unserved) string {
	what := plural.Of(u.Queued, "queued call waits", "queued calls wait")
	if u.Task != "" {
		return fmt.Sprintf("%s until %s serves: only that task may call %s", what, u.Task, u.Function)
	}
	return fmt.Sprintf("%s until a task serves that has registered %s", what, u.Function)
}

// cancelledLine returns a sentence with the number of calls that were cancelled.
func cancelledLine(queued, executing int) string {
	text := "cancelled " + plural.Of(queued, "queued call", "queued calls")
	switch {
	case queued == 0 && executing == 0:
		return "nothing to cancel: these calls have ended"
	case executing == 1:
		text += "; 1 running call was asked to end"
	case executing > 1:
		text += fmt.Sprintf("; %d running calls were asked to end", executing)
	}
	return text
}
