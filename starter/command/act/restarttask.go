package act

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func RestartTask(a *cli.App) *cobra.Command {
	var (
		signal string
		grace  cli.Duration
	)
	cmd := &cobra.Command{
		Use:   "restart-task [flags] RUN TASK...",
		Short: "Restart tasks",
		Long: `Stops the named tasks and starts them again, on the same host and address. This does not
count towards max_restarts. A task whose program or directory no longer exists is left
running. With restart scope "group" all tasks are placed and started again, and a missing program is
noticed only then.

` + cli.SeveralTasks + `

` + cli.ExitCodesOfRequests,
		Example: "  clusterrun restart-task iris-x2k4 worker-1",
		Args:    cli.SomeArgs(2, "RUN or TASK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckTasks(args[1:]); err != nil {
				return err
			}
			q := spec.TaskRequest{Signal: signal}
			if cmd.Flags().Changed("grace") {
				q.Grace = grace.Spec()
			}
			return cli.Request(cmd.Context(), a, args[0], "restarted", args[1:], func(ctx context.Context, r *starter.Run, tasks []string) (spec.RequestAnswer, error) {
				q.Tasks = tasks
				return r.RestartTask(ctx, q)
			})
		},
	}
	cmd.Flags().StringVar(&signal, "signal", "", "`SIGNAL` to send instead of the spec's stop signal")
	cmd.Flags().Var(&grace, "grace", "`TIME` from the signal to SIGKILL, instead of the spec's")
	return cmd
}
