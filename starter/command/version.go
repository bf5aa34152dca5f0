package command

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Version(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Prints the version of clusterrun, the commit and what it is built with.\n\nExit codes:\n  0  printed",
		Example: "  clusterrun version --json",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.PrintLine(cli.BuildInfo(), "%v", cli.VersionLine())
		},
	}
}
