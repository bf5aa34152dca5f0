package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/command/submit"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/internal/unexecuted"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// runRemote submits a run, shows its output and waits for it to finish.
func runRemote(a *cli.App, cmd *cobra.Command, s *spec.RunSpec, o runOptions) error {
	ctx := cmd.Context()
	if s.PlacementTimeout == nil {
		// By default, a submitted run waits for hosts without limit, but here a user is waiting.
		patience := spec.DefaultPlacementTimeout
		s.PlacementTimeout = &patience
	}
	return submit.Start(ctx, a, s, starter.Options{ID: o.id, Queue: o.queue}, &o.signing, func(r *starter.Run) error {
		a.Say("run %s has started; Ctrl-C only stops waiting for it, `clusterrun stop %s` stops the run", r.ID, r.ID)
		placing, placed := context.WithCancel(ctx)
		defer placed()
		go sayPlacing(placing, a, r)
		go endUnserved(placing, r, o.queue, s.PlacementTimeout.Std())
		shown := make(chan error, 1)
		if o.quiet || s.Logs.Dir == spec.NullDir {
			shown <- nil
		} else {
			go func() { shown <- showRemote(ctx, a, r, s.WithDefaults(), o.fold) }()
		}
		return report.AwaitEnd(ctx, a, r, shown)
	})
}

// servedWithin is added to the placement timeout of a run that no worker executes. A worker that
// executes a run enforces the timeout itself.
const servedWithin = 2 * time.Second

// endUnserved ends a run if no worker has started to execute it within its placement timeout,
// because in that case only this command can enforce the timeout.
func endUnserved(ctx context.Context, r *starter.Run, queue string, patience time.Duration) {
	for wait := patience + servedWithin; retry.Sleep(ctx, wait) == nil; wait = servedWithin {
		if begun, err := unexecuted.HasBegun(ctx, r); err != nil {
			continue // other code reports a server that does not answer
		} else if begun {
			return
		}
		looking, done := context.WithTimeout(ctx, cli.RequestTimeout)
		nobody, err := unexecuted.Is(looking, r)
		done()
		if err == nil && nobody && unexecuted.End(ctx, r, fmt.Sprintf("no worker served the queue %s within the placement timeout of %s", queue, patience)) == nil {
			return
		}
	}
}

// showRemote shows the output of a run on other hosts until the run has ended, like [show] for a
// local run. If output is missing, it reports that and returns an error.
func showRemote(ctx context.Context, a *cli.App, r *starter.Run, s *spec.RunSpec, fold logs.Fold) error {
	l := logs.NewReader(a, r, files.Selection{})
	l.Follow, l.Spec, l.Fold, l.Notify = true, s, fold, func(error) {}
	err := l.Show(ctx)
	if err == nil || starter.IsError[*cli.ExitError](err) {
		return err
	}
	a.Say("the output is incomplete: %s", err)
	return &cli.ExitError{Code: exitcode.Machinery}
}
