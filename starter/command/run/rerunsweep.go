package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// rerunSweep prepares flags to rerun a sweep. With --failed, it reports whether nothing is left to
// do because the sweep is open and has requeued its failed trials.
func rerunSweep(ctx context.Context, a *cli.App, cmd *cobra.Command, r *starter.Run, flags *rerunOptions) (done bool, err error) {
	known, err := r.Summary(ctx)
	switch {
	case err != nil:
		return false, err
	case !known.Sweep && flags.failed:
		return false, cli.Usagef("--failed: run %s is not a sweep. Omit --failed: `clusterrun rerun %s` runs it again", r.ID, r.ID)
	case !known.Sweep:
		return false, nil
	}
	if flags.o.array.Changed() {
		return false, cli.Usagef("--array: the sweep already has parameters; omit --array, or start another sweep with submit --array")
	}
	if flags.o.sweep, err = r.SweepSpec(ctx); err != nil {
		return false, err
	}
	if flags.o.sweep.Rules, err = flags.o.array.Rules(flags.o.sweep.Rules); err != nil {
		return false, err
	}
	if !flags.failed {
		return false, nil
	}
	if flags.o.id != "" {
		return false, cli.Usagef("--id %s: with --failed, the sweep keeps its ID; omit one of them", flags.o.id)
	}
	s, err := r.Status(ctx)
	switch {
	case err != nil:
		return false, err
	case s.Open:
		return true, retryOpen(ctx, a, cmd, r, s)
	case s.Sweep == nil || s.Sweep.States == "":
		return false, fmt.Errorf("sweep %s did not leave a result, so it is not known which trials failed; omit --failed to run all of them again", r.ID)
	}
	states, n, err := sweep.Again(s.Sweep.States)
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, fmt.Errorf("all trials of sweep %s have succeeded; omit --failed to run all of them again", r.ID)
	}
	flags.o.id, flags.o.resume, flags.o.started = r.ID, &sweep.Resumption{Machine: states}, s.Started
	return false, nil
}

// retryOpen requeues the failed trials of an open sweep.
func retryOpen(ctx context.Context, a *cli.App, cmd *cobra.Command, r *starter.Run, s *starter.Status) error {
	other := ""
	if cmd.ArgsLenAtDash() >= 0 {
		other = " COMMAND"
	}
	cmd.LocalNonPersistentFlags().Visit(func(f *pflag.Flag) {
		if f.Changed && f.Name != "failed" && f.Name != "last" && f.Name != "execution" {
			other = f.Name
		}
	})
	if other != "" {
		return cli.Usagef("--%s: sweep %s is open and keeps its spec; omit the flag, or wait until the sweep has ended", other, r.ID)
	}
	if s.Sweep == nil || s.Sweep.Failed+s.Sweep.Skipped+s.Sweep.Cancelled == 0 {
		return fmt.Errorf("no trial of sweep %s has failed so far", r.ID)
	}
	if err := cli.SignalSweep(ctx, r, spec.SignalRetryTrials, nil); err != nil {
		return err
	}
	return a.PrintLine(map[string]string{"run_id": r.ID, "state": "retrying"}, "retrying: %s", r.ID)
}
