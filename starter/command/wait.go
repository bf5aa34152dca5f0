package command

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Wait(a *app) *cobra.Command {
	var progress bool
	cmd := onRun(a, &cobra.Command{
		Use:   "wait [flags] RUN",
		Short: "Wait for the end of a run, and exit as it did",
		Long: `Waits for the end of a run, reports how it ended, and exits as clusterrun run does. Ctrl-C
ends the waiting, not the run.

--progress shows on stderr how the run is doing: on a terminal in a line that is updated,
and elsewhere with a line for each change.

` + exitCodesOfRuns,
		Example: "  clusterrun wait iris-x2k4\n  clusterrun wait --progress iris-x2k4\n  clusterrun wait --json iris-x2k4 | jq .first_failure",
	}, func(ctx context.Context, r *starter.Run) error {
		if progress {
			return awaitShown(ctx, a, r)
		}
		return await(ctx, a, r, nil)
	})
	cmd.Flags().BoolVar(&progress, "progress", false, "show how the run is doing meanwhile")
	return cmd
}

// awaitShown waits for a run, shows how it is doing meanwhile, and reports its end.
func awaitShown(ctx context.Context, a *app, r *starter.Run) error {
	console := tasklog.NewConsole(a.out, a.err, tasklog.ConsoleOptions{})
	a.voice.through(console)
	f := tasklog.FileOf(a.err)
	live := f != nil && tasklog.IsTerminal(f)
	var changes news
	result, err := watch(ctx, r, func(s *starter.Status) error {
		line := changes.of(s)
		switch {
		case live:
			console.SetStatus(liveLine(r.ID, counts(s)+progressLine(s, time.Now()), s.Started))
		case line != "" && s.Open:
			a.say("%s", withClock(line))
		}
		return nil
	}, a.sayUnreachable)
	a.voice.flush()
	a.voice.through(nil)
	_ = console.Close() // the outlets remember what went wrong
	return reportOf(ctx, a, r, result, err)
}

// reportOf reports how a run has ended whose files may be on other hosts.
func reportOf(ctx context.Context, a *app, r *starter.Run, result *spec.RunResult, err error) error {
	a.elsewhere = func(f *spec.ProcessFailure) ([]byte, error) { return errorFile(ctx, r, f) }
	return report(a, r.ID, result, err)
}

// await waits for a run and, where that is given, until its output has been shown, and
// reports its end. Its error has the exit code, that of the output last.
func await(ctx context.Context, a *app, r *starter.Run, shown <-chan error) error {
	result, err := r.WaitNotify(ctx, a.sayUnreachable)
	var incomplete error
	if shown != nil {
		incomplete = <-shown
	}
	return cmp.Or(reportOf(ctx, a, r, result, err), incomplete)
}

// sayUnreachable tells when the server goes away, or the run does not get on,
// and when that is over.
func (a *app) sayUnreachable(err error) {
	var stuck *starter.StuckError
	switch {
	case err == nil:
		a.say("that is over, the run goes on")
	case errors.As(err, &stuck):
		a.say("%s", err)
	default:
		a.say("the Temporal server does not answer; the processes go on, waiting for it (%v)", err)
	}
}
