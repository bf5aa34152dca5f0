package act

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Restart(a *cli.App) *cobra.Command {
	var how endFlags
	cmd := &cobra.Command{
		Use:   "restart [flags] RUN TASK...",
		Short: "Restart tasks",
		Args:  cli.SomeArgs(2, "RUN or TASK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restartTasks(cmd.Context(), a, args[0], args[1:], how)
		},
	}
	how.register(cmd)
	return cmd
}

// restartTasks stops tasks of a run and starts them again.
func restartTasks(ctx context.Context, a *cli.App, id string, tasks []string, how endFlags) error {
	return cli.Request(ctx, a, id, "restarted", tasks, spec.UpdateRestartTask, spec.TaskRequest{Signal: how.signal, Grace: how.given()})
}

// endFlags are the flags that configure how the process of a task is ended.
type endFlags struct {
	signal string
	grace  cli.Duration
	set    func(flag string) bool
}

// register adds the flags to a command.
func (f *endFlags) register(cmd *cobra.Command) {
	f.set = cmd.Flags().Changed
	cmd.Flags().StringVar(&f.signal, "signal", "", "send `SIGNAL` instead of the spec's stop signal")
	cmd.Flags().Var(&f.grace, "grace", "wait this `TIME` before SIGKILL, instead of the spec's grace")
}

// given returns the grace, or nil if the flag is not set.
func (f *endFlags) given() *spec.Duration {
	if !f.set("grace") {
		return nil
	}
	return f.grace.Spec()
}
