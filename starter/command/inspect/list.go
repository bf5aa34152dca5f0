package inspect

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func List(a *cli.App) *cobra.Command {
	var flags listOptions
	cmd := &cobra.Command{
		Use:     "list [flags]",
		Aliases: []string{"ls"},
		Short:   "List runs, open ones first",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), a, cmd, &flags) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&flags.o.Open, "open", false, "only runs that have not ended")
	fs.BoolVar(&flags.o.Failed, "failed", false, "only runs that failed, timed out or were terminated")
	fs.StringVar(&flags.since, "since", "", "only runs that started within this `TIME`, such as 2d, or since a time such as 2026-01-31T12:00:00Z")
	fs.StringVar(&flags.o.Name, "name", "", "only runs with a name or ID that matches `PATTERN`, such as 'iris*'")
	fs.StringVar(&flags.o.Owner, "owner", "", "only runs that `USER@HOST` started")
	fs.StringVar(&flags.o.Host, "on-host", "", "only runs with tasks on host `NAME`, now or when they ended")
	fs.StringVar(&flags.o.Cause, "cause", "", "only runs that ended for this `CAUSE`: "+strings.Join(causes(), ", "))
	fs.BoolVar(&flags.o.Trials, "trials", false, "also list the trials of sweeps")
	fs.BoolVar(&flags.wide, "wide", false, "show more columns, and full commands")
	flags.pending.register(fs)
	fs.IntVarP(&flags.o.Limit, "limit", "n", 20, "list at most `NUMBER` runs")
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "pending" && f.Name != "queue" {
			cmd.MarkFlagsMutuallyExclusive("pending", f.Name) // a queue shows all its pending runs
		}
	})
	cmd.MarkFlagsMutuallyExclusive("open", "failed")
	cmd.MarkFlagsMutuallyExclusive("open", "cause") // a run has a cause only once it has ended
	return cmd
}

// listOptions holds the flags of [List].
type listOptions struct {
	o       starter.ListOptions
	pending pendingFlags
	wide    bool
	since   string
}

// runList runs the command [List].
func runList(ctx context.Context, a *cli.App, cmd *cobra.Command, flags *listOptions) error {
	if cmd.Flags().Changed("queue") && !flags.pending.pending {
		return cli.Usagef("--queue requires --pending")
	}
	if flags.pending.pending {
		return listPending(ctx, a, flags.pending.queue)
	}
	limit := flags.o.Limit
	if limit < 1 {
		return cli.Usagef("--limit %d: use 1 or more", limit)
	}
	if _, err := path.Match(flags.o.Name, ""); err != nil {
		return cli.Usagef("--name %q: not a valid pattern; for example, 'iris*'", flags.o.Name)
	}
	if flags.o.Cause != "" && !slices.Contains(causes(), flags.o.Cause) {
		return cli.Usagef("--cause %q: use one of %s", flags.o.Cause, strings.Join(causes(), ", "))
	}
	var err error
	if flags.o.Since, err = cli.ParseTime("--since", flags.since, time.Now()); err != nil {
		return err
	}
	c, _, err := a.DialExisting(ctx)
	if err == cli.ErrNoServer && a.Global.JSON {
		return a.PrintJSON([]starter.Summary{})
	}
	if err != nil {
		return err
	}
	defer c.Close()
	flags.o.Limit, flags.o.Facts, flags.o.OpenFirst = limit+1, true, true
	runs, err := starter.List(ctx, c, flags.o)
	if err != nil {
		return err
	}
	if len(runs) > limit {
		runs = runs[:limit]
		defer a.Say("older runs are not shown; raise --limit to show them")
	}
	return a.Print(runs, func() { printList(a, runs, flags.wide) })
}

// causes returns the possible causes of a run's end. A process's collateral exit is not one.
func causes() []string {
	var names []string
	for _, c := range spec.Causes {
		if c.Cause != spec.CauseCollateral {
			names = append(names, string(c.Cause))
		}
	}
	return names
}

func printList(a *cli.App, runs []starter.Summary, wide bool) {
	if len(runs) == 0 {
		a.Say("there are no runs")
		return
	}
	heading := []any{"RUN", "STATUS", "EXIT", "TASKS", "OWNER", "STARTED (" + time.Now().Format("MST") + ")", "TOOK"}
	heard := slices.ContainsFunc(runs, func(r starter.Summary) bool { return !r.LastOutput.IsZero() })
	if heard {
		heading = append(heading, "LAST OUTPUT")
	}
	if wide {
		heading = append(heading, "CAUSE", "RESTARTS", "PRIORITY", "HOSTS", "QUEUE", "DIRECTORY")
	}
	w := cli.NewTable(a.Out, append(heading, "COMMAND")...)
	for _, r := range runs {
		state, exit, took := r.State, "-", cli.Roughly(time.Since(r.Started))
		if len(r.Facts) > 0 && r.Facts[0].Kind != outcome.FactWaiting {
			state += ", " + string(r.Facts[0].Kind)
		}
		if !r.Open {
			took = cli.Roughly(r.Ended.Sub(r.Started))
			state = cli.OrDash(spec.OneLine(cmp.Or(r.Ending, string(r.Verdict))))
			exit = fmt.Sprint(r.ExitCode)
		}
		tasks := cli.OrDash(spec.OneLine(r.Tasks))
		row := []any{spec.OneLine(r.RunID), state, exit, tasks, cli.OrDash(spec.OneLine(r.Owner)), r.Started.Local().Format("2006-01-02 15:04:05"), took}
		if heard {
			row = append(row, lastOutput(r.LastOutput))
		}
		command := spec.OneLine(r.Command)
		if wide {
			row = append(row, cli.OrDash(spec.OneLine(string(r.Cause))), r.Restarts, number(r.Priority),
				cli.OrDash(spec.OneLine(shorten.List(r.Hosts, 3))), spec.OneLine(r.Queue), cli.OrDash(spec.OneLine(r.Dir)))
		} else {
			command = shorten.Text(command, 50)
		}
		w.Row(append(row, cli.OrDash(command))...)
	}
	w.Flush()
}
