package command

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Version(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.PrintLine(cli.BuildInfo(), "%v", cli.VersionLine())
		},
	}
}
