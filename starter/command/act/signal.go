package act

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Signal(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "signal [flags] RUN TASK... SIGNAL",
		Short: "Send a signal to tasks",
		Long: `Sends a signal to all processes of the named tasks. A task that dies of it has failed; to
stop one, use terminate.

` + cli.SeveralTasks + `

` + cli.ExitCodesOfRequests,
		Example: "  clusterrun signal iris-x2k4 worker-0 worker-1 SIGUSR1",
		Args:    cli.SomeArgs(3, "RUN, TASK or SIGNAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			q := spec.SignalRequest{Tasks: args[1:last], Signal: args[last]}
			if err := cli.CheckTasks(q.Tasks); err != nil {
				return err
			}
			if _, err := spec.SignalNumber(q.Signal); err != nil {
				return cli.Usagef("%s", err)
			}
			return cli.Request(cmd.Context(), a, args[0], "signalled", q.Tasks, func(ctx context.Context, r *starter.Run, tasks []string) (spec.RequestAnswer, error) {
				q.Tasks = tasks
				return r.SignalTask(ctx, q)
			})
		},
	}
}
