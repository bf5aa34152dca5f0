package worker

import (
	_ "embed"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

//go:embed unit.service
var unit string

func workerUnitCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "unit",
		Short: "Print a systemd unit that keeps a host worker running",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			program, err := ownProgram()
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.Out, unitOf(program))
			return err
		},
	}
}

// unitOf returns the unit that executes a program. In a path, % begins a systemd specifier.
func unitOf(program string) string {
	return strings.ReplaceAll(unit, "=clusterrun worker", "="+strings.ReplaceAll(strconv.Quote(program), "%", "%%")+" worker")
}
