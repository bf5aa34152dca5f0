package hosts

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func Queue(a *cli.App) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "queue [flags]",
		Short: "Show the runs that wait for hosts, in order, and what each waits for",
		Long: `Shows the runs that wait for room on the hosts of a queue, in the order in which they get it:
by priority, 1 before 5, and then by age. A smaller run may overtake a larger one if that
does not delay the larger one.

` + cli.ExitCodesOfRequests,
		Example: "  clusterrun queue\n  clusterrun queue --json | jq -r '.[0].why'",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runQueue(cmd.Context(), a, queue) },
	}
	cli.QueueFlag(cmd, &queue)
	return cmd
}

// runQueue implements [Queue].
func runQueue(ctx context.Context, a *cli.App, queue string) error {
	return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
		waiting, err := f.Waiting(ctx)
		if err != nil {
			return err
		}
		if a.Global.JSON {
			if waiting == nil {
				waiting = []fleet.Waiting{}
			}
			return a.PrintJSON(waiting)
		}
		printWaiting(a, waiting)
		return nil
	})
}

func printWaiting(a *cli.App, waiting []fleet.Waiting) {
	if len(waiting) == 0 {
		a.Say("no run waits")
		return
	}
	now := time.Now()
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "POSITION\tRUN\tPRIORITY\tTASKS\tWAITS\tFOR")
	for _, r := range waiting {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t%s\n", r.Position, r.Run.WorkflowID, r.Priority, r.Tasks, cli.Ago(now, r.Since), r.Why)
	}
	w.Flush()
}
