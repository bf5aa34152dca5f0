package control

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Signal(a *cli.App) *cobra.Command {
	var runs cli.RunSelector
	cmd := &cobra.Command{
		Use:   "signal [flags] RUN TASK... SIGNAL",
		Short: "Send a signal to tasks",
		Args:  runs.Args(cli.SomeArgs(3, "RUN, TASK or SIGNAL")),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			if _, err := spec.SignalNumber(args[last]); err != nil {
				return cli.Usagef("%s", err)
			}
			return cli.Request(cmd.Context(), a, &runs, args[:last], "signalled", spec.UpdateSignalTask, spec.SignalRequest{Signal: args[last]})
		},
	}
	runs.Flags(cmd)
	return cmd
}
