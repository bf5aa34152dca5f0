package worker

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

func Side(*cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "side",
		Short:  "A host worker's Temporal client; started by its supervisor",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			return workers.Side(ctx)
		},
	}
}
