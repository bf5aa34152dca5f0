package logs

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Logs(a *cli.App) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs [flags] RUN [TASK...]",
		Short: "Show the output of a run",
		Args:  o.runs.Args(cli.SomeArgs(1, "RUN")),
		RunE:  func(cmd *cobra.Command, args []string) error { return runLogs(cmd.Context(), a, cmd, args, &o) },
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow the output until the run has ended")
	cmd.Flags().BoolVar(&o.selected.OnlyStdout, "stdout", false, "only stdout")
	cmd.Flags().BoolVar(&o.selected.OnlyStderr, "stderr", false, "only stderr")
	cmd.Flags().StringSliceVar(&o.attempts, "attempt", nil, "only attempt `N` of each task, from 0, or \"last\"; may be repeated")
	cmd.Flags().StringVar(&o.since, "since", "", "only output of the last `TIME`, such as 10m or 2d, or since a time such as 2026-01-31T12:00:00Z")
	cmd.Flags().IntVar(&o.selected.Tail, "tail", 0, "only the last `N` lines of each stream of a process; with -f, also new lines")
	o.fold.Register(cmd.Flags())
	o.runs.Flags(cmd)
	return cmd
}

// logsOptions holds the flags of [Logs].
type logsOptions struct {
	follow   bool
	runs     cli.RunSelector
	since    string
	attempts []string
	fold     Fold
	selected files.Selection
}

// runLogs runs the command [Logs].
func runLogs(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *logsOptions) error {
	if o.selected.OnlyStdout && o.selected.OnlyStderr {
		o.selected.OnlyStdout, o.selected.OnlyStderr = false, false
	}
	if o.selected.Tail < 0 || o.selected.Tail == 0 && cmd.Flags().Changed("tail") {
		return cli.Usagef("--tail %d: use 1 or more", o.selected.Tail)
	}
	if err := o.fold.Check(); err != nil {
		return err
	}
	if err := o.parseAttempts(); err != nil {
		return err
	}
	var err error
	if o.selected.Since, err = cli.ParseTime("--since", o.since, time.Now()); err != nil {
		return err
	}
	return cli.WithRun(ctx, a, &o.runs, args, func(r *starter.Run, tasks []string) error {
		if s, err := r.Summary(ctx); err == nil && s.Sweep {
			return cli.Usagef("%s is a sweep; name one of its trials, such as %s", r.ID, spec.TrialID(r.ID, 0))
		}
		o.selected.Names = tasks
		l := NewReader(a, r, o.selected)
		l.Follow, l.Fold = o.follow, o.fold
		return l.Show(ctx)
	})
}

// lastAttempt is the value of --attempt that stands for the last process of each task.
const lastAttempt = "last"

// parseAttempts parses the values of --attempt.
func (o *logsOptions) parseAttempts() error {
	for _, v := range o.attempts {
		if v == lastAttempt {
			o.selected.Last = true
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return cli.Usagef("--attempt %q: use a process number, from 0, or %s", v, lastAttempt)
		}
		o.selected.Attempts = append(o.selected.Attempts, n)
	}
	return nil
}
