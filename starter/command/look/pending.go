package look

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// pendingFlags select the pending runs of a queue instead of all runs.
type pendingFlags struct {
	pending bool
	queue   string
}

func (p *pendingFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&p.pending, "pending", false, "only runs that wait for room on the hosts of a queue or for other runs, in the order in which they begin, and the reason")
	fs.StringVar(&p.queue, "queue", spec.TaskQueue, "with --pending: task `QUEUE` of the hosts")
}

// check refuses flags that do not go together.
func (p *pendingFlags) check(cmd *cobra.Command) error {
	if !p.pending {
		if cmd.Flags().Changed("queue") {
			return cli.Usagef("--queue is for --pending")
		}
		return nil
	}
	var other string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "pending" && f.Name != "queue" && f.Name != "watch" && cmd.InheritedFlags().Lookup(f.Name) == nil {
			other = f.Name
		}
	})
	if other != "" {
		return cli.Usagef("--pending and --%s exclude each other: a queue shows all its pending runs; leave --%s out", other, other)
	}
	return nil
}

// listPending prints the pending runs of a queue.
func listPending(ctx context.Context, a *cli.App, queue string, watch bool) error {
	return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
		return showList(ctx, a, watch, func(a *cli.App) error {
			pending, err := f.Pending(ctx)
			if err != nil {
				return err
			}
			return a.Print(pending, func() { printPending(a, pending) })
		})
	})
}

func printPending(a *cli.App, pending []starter.PendingRun) {
	if len(pending) == 0 {
		a.Say("no run is pending")
		return
	}
	now := time.Now()
	w := cli.NewTable(a.Out, "POSITION", "RUN", "PRIORITY", "TASKS", "WAITS", "FOR")
	for _, r := range pending {
		w.Row(number(r.Position), r.Run.WorkflowID, r.Priority, number(r.Tasks), cli.Ago(now, r.Since), r.Why)
	}
	w.Flush()
}
