package submit

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Schema(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a run spec",
		Long: `Prints the JSON Schema of a run spec, for editors and for other programs.

Exit codes:
  0  printed`,
		Example: `  clusterrun schema > clusterrun.schema.json
  # then, as the first line of a spec, for editors with a YAML language server:
  # yaml-language-server: $schema=clusterrun.schema.json`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.PrintRaw(spec.Schema()) },
	}
}
