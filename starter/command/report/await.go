package report

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Wait(a *cli.App) *cobra.Command {
	var progress bool
	cmd := cli.OnRun(a, &cobra.Command{
		Use:   "wait [flags] RUN",
		Short: "Wait for the end of a run, and exit as it did",
		Long: `Waits for the end of a run, reports how it ended, and exits as clusterrun run does. Ctrl-C
ends the waiting, not the run.

--progress shows on stderr how the run is doing: on a terminal in a line that is updated,
and elsewhere with a line for each change.

` + cli.ExitCodesOfRuns,
		Example: "  clusterrun wait iris-x2k4\n  clusterrun wait --progress iris-x2k4\n  clusterrun wait --json iris-x2k4 | jq .first_failure",
	}, func(ctx context.Context, r *starter.Run) error {
		if progress {
			return awaitShown(ctx, a, r)
		}
		return AwaitEnd(ctx, a, r, nil)
	})
	cmd.Flags().BoolVar(&progress, "progress", false, "show how the run is doing meanwhile")
	return cmd
}

// awaitShown waits for a run, shows its progress, and reports its end.
func awaitShown(ctx context.Context, a *cli.App, r *starter.Run) error {
	console := tasklog.NewConsole(a.Out, a.Err, tasklog.ConsoleOptions{})
	a.Printer.Through(console)
	f := tasklog.FileOf(a.Err)
	live := f != nil && tasklog.IsTerminal(f)
	var changes News
	result, err := Watch(ctx, r, func(s *starter.Status) error {
		line := changes.Of(s)
		switch {
		case live:
			console.SetStatus(LiveLine(r.ID, Counts(s)+ProgressLine(s, time.Now()), s.Started))
		case line != "" && s.Open:
			a.Say("%s", WithClock(line))
		}
		return nil
	}, a.SayUnreachable)
	a.Printer.Flush()
	a.Printer.Through(nil)
	_ = console.Close() // the outputs remember errors
	return reportOf(ctx, a, r, result, err)
}

// reportOf reports the end of a run whose files may be on other hosts.
func reportOf(ctx context.Context, a *cli.App, r *starter.Run, result *spec.RunResult, err error) error {
	a.Elsewhere = func(f *spec.Failure) ([]byte, error) { return errorFile(ctx, r, f) }
	return Report(a, r.ID, result, err)
}

// AwaitEnd waits for a run and, if shown is not nil, for its output to be shown, and reports
// the end of the run. Its error has the exit code: the code of the run or, if that is 0, of the
// output.
func AwaitEnd(ctx context.Context, a *cli.App, r *starter.Run, shown <-chan error) error {
	result, err := r.WaitNotify(ctx, a.SayUnreachable)
	var incomplete error
	if shown != nil {
		incomplete = <-shown
	}
	return cmp.Or(reportOf(ctx, a, r, result, err), incomplete)
}
