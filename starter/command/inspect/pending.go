package inspect

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// pendingFlags selects a queue's pending runs instead of all runs.
type pendingFlags struct {
	pending bool
	queue   string
}

func (p *pendingFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&p.pending, "pending", false, "list only pending runs and runs that wait for other runs, in start order, with the reason for each")
	fs.StringVar(&p.queue, "queue", spec.TaskQueue, "with --pending: task `QUEUE` of the hosts")
}

// listPending prints a queue's pending runs.
func listPending(ctx context.Context, a *cli.App, queue string) error {
	return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
		pending, err := f.Pending(ctx)
		if err != nil {
			return err
		}
		return a.Print(pending, func() { printPending(a, pending) })
	})
}

func printPending(a *cli.App, pending []starter.PendingRun) {
	if len(pending) == 0 {
		a.Say("no runs are pending")
		return
	}
	now := time.Now()
	w := cli.NewTable(a.Out, "POSITION", "RUN", "PRIORITY", "TASKS", "WAITS", "FOR")
	for _, r := range pending {
		w.Row(number(r.Position), r.Run.WorkflowID, r.Priority, number(r.Tasks), cli.Ago(now, r.Since), r.Why)
	}
	w.Flush()
}
