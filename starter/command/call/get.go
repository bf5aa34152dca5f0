package call

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func getCommand(a *cli.App) *cobra.Command {
	var timeout waitTimeout
	cmd := &cobra.Command{
		Use:   "get [flags] RUN ID...",
		Short: "Print the values of calls",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return cli.Usagef("ID is missing; usage: %s", cmd.UseLine())
			}
			return cli.SomeArgs(2, "RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGet(cmd.Context(), a, args, time.Duration(timeout))
		},
	}
	timeout.register(cmd, "give up after `TIME`")
	return cmd
}

// runGet implements [getCommand].
func runGet(ctx context.Context, a *cli.App, args []string, timeout time.Duration) error {
	ids, err := parseIDs(args[1:])
	if err != nil {
		return err
	}
	return withQueue(ctx, a, args[0], access{attach: existing, timeout: timeout, waits: true}, func(ctx context.Context, q *closurequeue.Queue) error {
		remotes, err := q.FetchAll(ctx, ids...)
		if err != nil {
			return err
		}
		for i, r := range remotes {
			value, err := r.Wait(ctx)
			if err != nil {
				return err
			}
			if err := printValue(a, ids[i], value); err != nil {
				return err
			}
		}
		return nil
	})
}

// parseIDs returns the IDs of calls.
func parseIDs(args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || id == 0 {
			return nil, cli.Usagef("%q is not the ID of a call; give a number from 1, as `clusterrun call RUN FUNCTION` prints it", arg)
		}
		ids[i] = id
	}
	return ids, nil
}

// noCall reports an unknown ID.
func noCall(id, calls uint64) error {
	return cli.Usagef("there is no call %d; the run has %s, and their IDs begin at 1", id, plural.Of(int(calls), "call", "calls"))
}
