package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
)

func (a *app) stopCommand() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "stop [flags] RUN...",
		Short: "Stop runs, with their stop signal and grace",
		Long: `Stops runs: every task gets the spec's stop signal, and SIGKILL when its grace has
passed. It returns when the runs are asked, or with --wait when they have ended.

` + exitCodesOfRequests,
		Example: "  clusterrun stop iris-x2k4",
		Args:    someArgs(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.dialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			for _, id := range args {
				if err := a.stop(cmd.Context(), starter.Get(c, id, ""), wait); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the runs have ended")
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
