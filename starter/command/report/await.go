package report

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Wait(a *cli.App) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:   "wait [flags] RUN...",
		Short: "Wait for runs, and exit like them",
		Args:  o.runs.Args(cli.SomeArgs(1, "RUN")),
		RunE:  func(cmd *cobra.Command, args []string) error { return runWait(cmd.Context(), a, args, &o) },
	}
	o.runs.Flags(cmd)
	cmd.Flags().BoolVar(&o.any, "any", false, "return when the first of the runs ends")
	cmd.Flags().StringSliceVar(&o.facts.kinds, "for", nil, "exit with 0 and print a line of JSON at the first new fact of a `KIND`, such as failed,silent,hung, or when the run ends")
	cmd.Flags().Var(&o.facts.timeout, "timeout", "with --for: exit with 124 after this time")
	cmd.Flags().StringVar(&o.facts.since, "since", "", "with --for: omit facts reported up to the `CURSOR` of an earlier answer")
	cmd.MarkFlagsMutuallyExclusive("for", "any")
	return cmd
}

// waitOptions holds the flags of [Wait].
type waitOptions struct {
	runs  cli.RunSelector
	any   bool
	facts forOptions
}

// runWait implements [Wait].
func runWait(ctx context.Context, a *cli.App, args []string, o *waitOptions) error {
	several := len(args) > 1 || len(args) == 1 && spec.IsPattern(args[0])
	isFor := len(o.facts.kinds) > 0
	if isFor && several {
		return cli.Usagef("--for accepts only one run; use a separate command for each")
	}
	if !isFor && (o.facts.timeout > 0 || o.facts.since != "") {
		return cli.Usagef("--timeout and --since require --for")
	}
	known, err := o.facts.check()
	if err != nil {
		return err
	}
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var selected *cli.Selected
	err = servererror.Patiently(ctx, a.SayUnreachable, func() (err error) {
		selected, err = o.runs.All(ctx, c, args)
		return err
	})
	switch {
	case err != nil:
		return err
	case several:
		return awaitSeveral(ctx, a, selected.Runs, o.any)
	case isFor:
		return awaitFact(ctx, a, selected.Runs[0], &o.facts, known)
	}
	return AwaitEnd(ctx, a, selected.Runs[0], nil)
}

// reportOf reports the end of a run that may have files on other hosts.
func reportOf(ctx context.Context, a *cli.App, r *starter.Run, result *spec.RunResult, err error) error {
	a.Elsewhere = func(f *spec.Failure) ([]byte, error) { return errorFile(ctx, r, f) }
	return Report(a, r.ID, result, err)
}

// AwaitEnd waits for a run and, if shown is not nil, for its output to be shown, and reports the
// run's end. Its error contains the run's exit code or, if that is 0, the output's.
func AwaitEnd(ctx context.Context, a *cli.App, r *starter.Run, shown <-chan error) error {
	result, err := r.WaitNotify(ctx, a.SayUnreachable)
	var incomplete error
	if shown != nil {
		incomplete = <-shown
	}
	return cmp.Or(reportOf(ctx, a, r, result, err), incomplete)
}
