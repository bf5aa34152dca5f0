package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
)

// showBarriers prints the tasks waiting at a run's barriers, and the missing tasks.
func showBarriers(ctx context.Context, a *cli.App, r *starter.Run) error {
	barriers, err := barriers.Open(ctx, r)
	if err != nil {
		return err
	}
	return a.Print(map[string]any{"run_id": r.ID, "barriers": barriers}, func() { printBarriers(a, r.ID, barriers) })
}

func printBarriers(a *cli.App, run string, barriers []barriers.Barrier) {
	if len(barriers) == 0 {
		a.Say("no task is waiting at a barrier of run %s (local barriers are not listed)", run)
		return
	}
	now := time.Now()
	for i, b := range barriers {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		fmt.Fprintf(a.Out, "barrier %s, round %d", b.Name, b.Round)
		if b.Generation > 0 {
			fmt.Fprintf(a.Out, ", generation %d", b.Generation)
		}
		if b.Unanswered {
			fmt.Fprintln(a.Out, ": open, but no worker is answering for it; is its `clusterrun worker`, `dev` or `run` running?")
			continue
		}
		fmt.Fprintf(a.Out, ": %d waiting, %d missing", len(b.Waiting), len(b.Missing))
		if !b.Deadline.IsZero() {
			fmt.Fprintf(a.Out, ", breaks in %s", cli.Roughly(max(0, b.Deadline.Sub(now))))
		}
		fmt.Fprintln(a.Out)
		w := cli.NewTable(a.Out, "TASK", "IS", "HOST", "SINCE ("+now.Local().Format("MST")+")", "FOR", "TASK STATE")
		for _, m := range b.Missing {
			w.Row(m.Task, "missing", cli.OrDash(m.Host), clock(m.Since), cli.Ago(now, m.Since), cli.OrDash(string(m.State)))
		}
		for _, t := range b.Waiting {
			w.Row(t.Task, "waiting", cli.OrDash(t.Host), clock(t.Since), cli.Ago(now, t.Since), "-")
		}
		w.Flush()
	}
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }
