package worker

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

func Side(a *cli.App) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:    "side",
		Short:  "The Temporal-facing side of a host worker; started by its supervisor",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return workers.CheckSide(os.Stdout)
			}
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			return workers.Side(ctx)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "answer whether this program can be the side")
	return cmd
}
