package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
)

// onRun has a command do something with the run that is its argument.
func (a *app) onRun(cmd *cobra.Command, do func(context.Context, *starter.Run) error) *cobra.Command {
	var execution string
	executionFlag(cmd, &execution)
	cmd.Args = oneArg("RUN")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, _, err := a.dialExisting(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd.Context(), starter.Get(c, args[0], execution))
	}
	return cmd
}

func executionFlag(cmd *cobra.Command, execution *string) {
	cmd.Flags().StringVar(execution, "execution", "", "`ID` of one execution (Temporal's run ID), where several had the same run ID")
}
