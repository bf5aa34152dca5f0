package server

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Server(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server COMMAND",
		Short: "Use the Temporal server from other programs",
	}
	cmd.AddCommand(envCommand(a), codecCommand(a))
	return cli.AsGroup(cmd)
}
