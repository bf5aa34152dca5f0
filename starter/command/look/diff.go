package look

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func Diff(a *cli.App) *cobra.Command {
	last := false
	cmd := &cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Compare two runs",
		Args: func(cmd *cobra.Command, args []string) error {
			if last && len(args) == 0 {
				return nil
			}
			if last {
				return cli.Usagef("--last: it chooses both runs; leave out %s", strings.Join(args, " "))
			}
			if len(args) != 2 {
				return cli.Usagef("give two runs; usage: %s", cmd.UseLine())
			}
			return errors.Join(cli.CheckRun(args[0]), cli.CheckRun(args[1]))
		},
		ValidArgsFunction: cli.Complete(a, func(ctx context.Context, c client.Client, args []string) []string {
			if len(args) > 1 {
				return nil
			}
			return cli.CompleteRuns(ctx, c, nil)
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return runDiff(cmd.Context(), a, args) },
	}
	cmd.Flags().BoolVar(&last, "last", false, "the latest run, and the one before it of the same name or command")
	return cmd
}

// runDiff runs the command [Diff]. It compares the latest runs if args are empty.
func runDiff(ctx context.Context, a *cli.App, args []string) error {
	failed := func(err error) error { return &cli.ExitError{Code: exitcode.Usage, Cause: err} }
	conn, _, err := a.DialExisting(ctx)
	if err != nil {
		return failed(err)
	}
	defer conn.Close()
	var runs [2]*starter.Run
	if len(args) == 0 {
		if runs[0], runs[1], err = latestTwo(ctx, conn); err != nil {
			return failed(err)
		}
	}
	var both [2]*record.Account
	for i := range both {
		if runs[i] == nil {
			if runs[i], _, err = (&cli.RunChoice{}).Find(ctx, conn, args[i:]); err != nil {
				return failed(fmt.Errorf("%s: %w", args[i], err))
			}
		}
		if both[i], err = AccountOf(ctx, a, runs[i]); err != nil {
			return failed(fmt.Errorf("%s: %w", runs[i].ID, err))
		}
	}
	c := record.Compare(both[0], both[1])
	if err := printComparison(a, c); err != nil {
		return &cli.ExitError{Code: exitcode.Usage, Cause: err}
	}
	if len(c.Differences) > 0 {
		return &cli.ExitError{Code: exitDifferent}
	}
	return nil
}

// latestTwo returns the latest run, and before it the run that was started last before it with the
// same name or command.
func latestTwo(ctx context.Context, c client.Client) (before, latest *starter.Run, err error) {
	const among = 1000
	runs, err := starter.List(ctx, c, starter.ListOptions{Limit: among})
	if err != nil {
		return nil, nil, err
	}
	for i, r := range runs {
		if i > 0 && (r.Name != "" && r.Name == runs[0].Name || r.Command != "" && r.Command == runs[0].Command) {
			return starter.Get(c, r.RunID, r.ExecutionID), starter.Get(c, runs[0].RunID, runs[0].ExecutionID), nil
		}
	}
	if len(runs) == 0 {
		return nil, nil, errors.New("--last: there are no runs")
	}
	return nil, nil, fmt.Errorf("--last: no earlier run has the name or the command of the latest run, %s; name two runs", runs[0].RunID)
}

// exitDifferent is the exit code if there are differences, as with diff(1).
const exitDifferent = 1

func printComparison(a *cli.App, c *record.Comparison) error {
	for _, text := range c.Unknown {
		a.Say("%s", text)
	}
	if a.Global.JSON {
		return a.PrintJSON(c)
	}
	fmt.Fprintf(a.Out, "--- %s\n+++ %s\n", c.A, c.B)
	switch {
	case len(c.Summary) > 0:
		fmt.Fprintf(a.Out, "these two differ in: %s\n", spec.Visible(strings.Join(c.Summary, ", ")))
	case len(c.Differences) > 0:
		fmt.Fprintln(a.Out, "both were started alike, according to their records")
	}
	in := ""
	for _, d := range c.Differences {
		if d.In != in {
			in = d.In
			fmt.Fprintf(a.Out, "%s:\n", in)
		}
		of := ""
		if len(d.Tasks) > 0 {
			of = " (" + shorten.List(d.Tasks, cli.MostNames) + ")"
		}
		fmt.Fprintf(a.Out, "  %s%s\n%s%s", spec.Cell(d.What), of, diffLine("    - ", d.A), diffLine("    + ", d.B))
	}
	fmt.Fprintln(a.Out, "durations:")
	w := cli.NewTable(a.Out)
	for _, d := range c.Durations {
		w.Row("  "+d.Phase, lasted(d.A), lasted(d.B))
	}
	return w.Flush()
}

// diffLine returns the lines of a value, each after sign. It returns "" for a nil value.
func diffLine(sign string, value *string) string {
	if value == nil {
		return ""
	}
	const most = 2000
	text := spec.Visible(shorten.Middle(*value, most, " … "))
	return sign + strings.ReplaceAll(text, "\n", "\n"+sign) + "\n"
}

func lasted(s *float64) string {
	if s == nil {
		return "-"
	}
	return seconds(*s)
}
