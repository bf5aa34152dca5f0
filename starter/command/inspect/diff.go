package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func Diff(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "diff [flags] RUN RUN",
		Short: "Compare two runs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("name two runs; usage: %s", cmd.UseLine())
			}
			return errors.Join(cli.CheckRun(args[0]), cli.CheckRun(args[1]))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := compare(cmd.Context(), a, args)
			if err == nil {
				err = printComparison(a, c)
			}
			if err != nil {
				return &cli.ExitError{Code: exitcode.Usage, Cause: err}
			}
			if len(c.Differences) > 0 {
				return &cli.ExitError{Code: exitDifferent}
			}
			return nil
		},
	}
}

// compare compares two runs.
func compare(ctx context.Context, a *cli.App, ids []string) (*runrecord.Comparison, error) {
	conn, _, err := a.DialExisting(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var both [2]*runrecord.Account
	for i, id := range ids {
		r, _, err := (&cli.RunSelector{}).One(ctx, conn, []string{id})
		if err == nil {
			both[i], err = AccountHere(ctx, r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
	return runrecord.Compare(both[0], both[1]), nil
}

// exitDifferent is the exit code if there are differences, like diff(1)'s.
const exitDifferent = 1

func printComparison(a *cli.App, c *runrecord.Comparison) error {
	for _, text := range c.Unknown {
		a.Say("%s", text)
	}
	if a.Global.JSON {
		return a.PrintJSON(c)
	}
	fmt.Fprintf(a.Out, "--- %s\n+++ %s\n", c.A, c.B)
	in := ""
	for _, d := range c.Differences {
		if d.In != in {
			in = d.In
			fmt.Fprintf(a.Out, "%s:\n", in)
		}
		of := ""
		if len(d.Tasks) > 0 {
			of = " (" + shorten.List(d.Tasks, cli.MaxNames) + ")"
		}
		fmt.Fprintf(a.Out, "  %s%s\n%s%s", spec.OneLine(d.What), of, diffLine("    - ", d.A), diffLine("    + ", d.B))
	}
	fmt.Fprintln(a.Out, "durations:")
	w := cli.NewTable(a.Out)
	for _, d := range c.Durations {
		w.Row("  "+d.Phase, lasted(d.A), lasted(d.B))
	}
	return w.Flush()
}

// diffLine returns a value's lines, each prefixed with sign. It returns "" for a nil value.
func diffLine(sign string, value *string) string {
	if value == nil {
		return ""
	}
	const most = 2000
	text := spec.EscapeControl(shorten.Middle(*value, most, " … "))
	return sign + strings.ReplaceAll(text, "\n", "\n"+sign) + "\n"
}

func lasted(s *float64) string {
	if s == nil {
		return "-"
	}
	return seconds(*s)
}
