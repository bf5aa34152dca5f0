package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
)

func (a *app) stopCommand() *cobra.Command {
	var wait bool
	together := togetherFlags{onlyWithTogether: []string{"reason", "error", "kind"}}
	cmd := &cobra.Command{
		Use:   "stop [flags] RUN...",
		Short: "Stop runs, with their stop signal and grace, or have their tasks stop together",
		Long: `Stops runs: every task gets the spec's stop signal, and SIGKILL when its grace has
passed. It returns when the runs are asked, or with --wait when they have ended.

With --together no signal is sent: the tasks learn that they are to stop, as they do
when one of them asks for that, and end by themselves, each at a point that suits it.
Those that still run when the grace of the spec's stop_together is over are stopped,
and the run fails with their names. An error that is given fails the run, unless its
kind is one of the spec's clean_errors. --clear takes such a stop back, until the
grace is over.

` + exitCodesOfRequests,
		Example: `  clusterrun stop iris-x2k4
  clusterrun stop --together --reason 'the machine is needed' iris-x2k4
  clusterrun stop --together --error 'the data is wrong' iris-x2k4
  clusterrun stop --clear iris-x2k4`,
		Args: someArgs(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := together.check(wait); err != nil {
				return err
			}
			c, _, err := a.dialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			for _, id := range args {
				r := starter.Get(c, id, "")
				switch {
				case together.together:
					err = a.stopTogether(cmd.Context(), r, together.request(), wait)
				case together.clear:
					err = a.clearStop(cmd.Context(), r)
				default:
					err = a.stop(cmd.Context(), r, wait)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	fs := cmd.Flags()
	together.given = fs.Changed
	fs.BoolVar(&wait, "wait", false, "wait until the runs have ended")
	fs.BoolVar(&together.together, "together", false, "have all tasks stop together, each by itself")
	fs.StringVar(&together.reason, "reason", "", "with --together: why, as `TEXT` for whoever looks at the run")
	fs.StringVar(&together.message, "error", "", "with --together: `TEXT` of an error, which is then the verdict of the run")
	fs.StringVar(&together.kind, "kind", "", "with --together: the `KIND` of the error, such as ValueError or StopIteration")
	fs.BoolVar(&together.clear, "clear", false, "take a stop together back, so that the run goes on")
	return cmd
}

func (a *app) stop(ctx context.Context, r *starter.Run, wait bool) error {
	asked, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// The server takes the cancellation of an ended run for good.
	if _, open, err := r.Queue(asked); err != nil {
		return err
	} else if !open {
		return &starter.EndedError{RunID: r.ID}
	}
	if err := r.Cancel(asked); err != nil {
		return err
	}
	did := "stopping"
	if wait {
		// However it ends, it has ended.
		if result, err := r.Wait(ctx); result == nil && err != nil {
			return err
		}
		did = "stopped"
	}
	if a.global.json {
		return a.printJSON(map[string]string{"run_id": r.ID, "state": did})
	}
	fmt.Fprintf(a.out, "%s: %s\n", did, r.ID)
	return nil
}
