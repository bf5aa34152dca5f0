package control

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Restart(a *cli.App) *cobra.Command {
	var how endFlags
	var runs cli.RunSelector
	cmd := &cobra.Command{
		Use:   "restart [flags] RUN TASK...",
		Short: "Restart tasks",
		Args:  runs.Args(cli.SomeArgs(2, "RUN or TASK")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Request(cmd.Context(), a, &runs, args, "restarted", spec.UpdateRestartTask, spec.TaskRequest{Signal: how.signal, Grace: how.given()})
		},
	}
	runs.Flags(cmd)
	how.register(cmd)
	return cmd
}

// endFlags holds the flags that configure how a task's process is stopped.
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

// given returns the grace period, or nil if the flag is not set.
func (f *endFlags) given() *spec.Duration {
	if !f.set("grace") {
		return nil
	}
	return f.grace.Spec()
}
