package call

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func pauseCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause [flags] RUN",
		Short: "Start no more calls until resume",
		Args:  cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			// There may be no call yet.
			return onQueue(cmd.Context(), a, args[0], opened, func(ctx context.Context, q *closurequeue.Queue) error {
				_, err := q.Pause(ctx, reason)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, which call list shows")
	return cmd
}

func resumeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "resume RUN",
		Short: "End a pause",
		Args:  cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onQueue(cmd.Context(), a, args[0], existing, func(ctx context.Context, q *closurequeue.Queue) error {
				_, err := q.Resume(ctx)
				return err
			})
		},
	}
}

func cancelCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "cancel [flags] RUN ID...",
		Short: "Cancel calls",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 1:
				return cli.Usagef("--all cancels all calls; leave it or the IDs out")
			case !all && len(args) == 1:
				return cli.Usagef("ID is missing: give the calls to cancel, or --all; usage: %s", cmd.UseLine())
			}
			return cli.SomeArgs(1, "RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args[1:])
			if err != nil {
				return err
			}
			return onQueue(cmd.Context(), a, args[0], existing, func(ctx context.Context, q *closurequeue.Queue) error {
				return cancelCalls(ctx, a, q, ids)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "cancel all calls of the run")
	return cmd
}

// cancelCalls cancels the calls with these IDs, or all calls if ids is empty.
func cancelCalls(ctx context.Context, a *cli.App, q *closurequeue.Queue, ids []uint64) error {
	if len(ids) > 0 { // the queue ignores unknown IDs
		s, err := q.Status(ctx)
		if err != nil {
			return err
		}
		if last := slices.Max(ids); last > s.Counts.Scheduled {
			return noCall(last, s.Counts.Scheduled)
		}
	}
	answer, err := q.Cancel(ctx, ids...)
	if err == nil {
		a.Say("%s", cancelledLine(answer.Cancelled, answer.Told))
	}
	return err
}
