package command

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (a *app) waitCommand() *cobra.Command {
	return a.onRun(&cobra.Command{
		Use:   "wait [flags] RUN",
		Short: "Wait for the end of a run, and exit as it did",
		Long: `Waits for the end of a run, says how it ended, and exits as clusterrun run does.
Ctrl-C ends the waiting, not the run.

` + exitCodesOfRuns,
		Example: "  clusterrun wait iris-x2k4\n  clusterrun wait --json iris-x2k4 | jq .first_failure",
	}, func(ctx context.Context, r *starter.Run) error {
		return a.await(ctx, r, nil)
	})
}

// await waits for a run and, where that is given, until its output has been shown, and
// reports its end. Its error has the exit code, that of the output last.
func (a *app) await(ctx context.Context, r *starter.Run, shown <-chan error) error {
	result, err := r.WaitNotify(ctx, a.sayUnreachable)
	var incomplete error
	if shown != nil {
		incomplete = <-shown
	}
	a.elsewhere = func(f *spec.ProcessFailure) ([]byte, error) { return errorFile(ctx, r, f) }
	return cmp.Or(a.report(r.ID, result, err), incomplete)
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
