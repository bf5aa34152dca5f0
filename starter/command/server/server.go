package server

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Server(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server COMMAND",
		Short: "Use the Temporal server from a browser and other programs",
	}
	cmd.AddCommand(uiCommand(a), envCommand(a), codecCommand(a))
	return cli.AsGroup(cmd)
}
