package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/submit"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// runRemote is submit, and then logs -f and wait at the same time.
func runRemote(a *cli.App, cmd *cobra.Command, s *spec.RunSpec, o runOptions) error {
	archive, err := specs.Pack(cmd.Context(), a, s)
	if err != nil {
		return err
	}
	defer archive.Close()
	c, server, err := a.Dial(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	if s.PlacementTimeout == nil {
		// Somebody is there and waits; submit is for those who are not.
		patience := spec.DefaultPlacementTimeout
		s.PlacementTimeout = &patience
	}
	r, err := submit.Start(cmd.Context(), a, c, server, s, archive, starter.Options{ID: o.id, Queue: o.queue}, &o.signing)
	if err != nil {
		return err
	}
	a.Say("run %s has started; Ctrl-C only ends the waiting, `clusterrun stop %s` stops the run", r.ID, r.ID)
	ctx := cmd.Context()
	placing, placed := context.WithCancel(ctx)
	defer placed()
	go sayPlacing(placing, a, r)
	go endUnserved(placing, r, o.queue, s.PlacementTimeout.Std())
	shown := make(chan error, 1)
	if o.quiet || s.Logs.Dir == spec.NullDir {
		shown <- nil
	} else {
		go func() { shown <- showRemote(ctx, a, r, s.WithDefaults()) }()
	}
	return report.AwaitEnd(ctx, a, r, shown)
}

// servedWithin is added to the placement timeout of a run that nobody executes: those who do keep
// the timeout themselves.
const servedWithin = 2 * time.Second

// endUnserved ends a run that nobody has begun to execute within its placement timeout: nobody
// else would.
func endUnserved(ctx context.Context, r *starter.Run, queue string, patience time.Duration) {
	for wait := patience + servedWithin; retry.Sleep(ctx, wait) == nil; wait = servedWithin {
		if begun, err := r.Begun(ctx); err != nil {
			continue // others tell of a server that is away
		} else if begun {
			return
		}
		looking, done := context.WithTimeout(ctx, cli.RequestTimeout)
		nobody, err := r.Unexecuted(looking)
		done()
		if err == nil && nobody && r.EndUnexecuted(ctx, fmt.Sprintf("nobody served the queue %s within the placement timeout of %s", queue, patience)) == nil {
			return
		}
	}
}

// showRemote shows the output of a run on other hosts to its end, as [show] does that of
// one on this machine. It fails if some is missing, which it has said.
func showRemote(ctx context.Context, a *cli.App, r *starter.Run, s *spec.RunSpec) error {
	l := logs.NewReader(a, r, logs.Selection{})
	l.Follow, l.Spec, l.Notify = true, s, func(error) {}
	err := l.Show(ctx)
	var incomplete *cli.ExitError
	switch {
	case err == nil, errors.As(err, &incomplete):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return nil // why there is nothing to show is for the run's result to say
	}
	a.Say("the output is incomplete: %s", err)
	return &cli.ExitError{Code: exitcode.Machinery}
}
