package act

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Signal(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "signal [flags] RUN TASK... SIGNAL",
		Short: "Send a signal to tasks",
		Args:  cli.SomeArgs(3, "RUN, TASK or SIGNAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			return signalTasks(cmd.Context(), a, args[0], args[1:last], args[last])
		},
	}
}

// signalTasks sends a signal to the processes of tasks of a run.
func signalTasks(ctx context.Context, a *cli.App, id string, tasks []string, signal string) error {
	if _, err := spec.SignalNumber(signal); err != nil {
		return cli.Usagef("%s", err)
	}
	return cli.Request(ctx, a, id, "signalled", tasks, spec.UpdateSignalTask, spec.SignalRequest{Signal: signal})
}
