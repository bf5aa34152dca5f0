package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
)

// runChoice is how a command is told which run to look at.
type runChoice struct {
	last      bool
	execution string
}

// onRun has a command do something with the run that is its argument.
func (a *app) onRun(cmd *cobra.Command, do func(context.Context, *starter.Run) error) *cobra.Command {
	var choice runChoice
	choice.flags(cmd)
	cmd.Args = choice.args(oneArg("RUN"))
	cmd.ValidArgsFunction = a.completeRun
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, _, err := a.dialExisting(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		r, _, err := choice.find(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		return do(cmd.Context(), r)
	}
	return cmd
}

func (r *runChoice) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.execution, "execution", "", "`ID` of one execution (Temporal's run ID), where several had the same run ID")
	cmd.Flags().BoolVar(&r.last, "last", false, "the run that was started last, in place of RUN")
}

// args checks arguments as if RUN were among them where --last stands for it.
func (r *runChoice) args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if r.last {
			args = append([]string{"last"}, args...)
		}
		return check(cmd, args)
	}
}

// find returns the run that is meant, and the arguments after it. What only looks takes the
// beginning of an ID; what changes a run does not guess.
func (r *runChoice) find(ctx context.Context, c client.Client, args []string) (*starter.Run, []string, error) {
	if r.last {
		runs, err := starter.List(ctx, c, starter.ListOptions{Limit: 1})
		if err != nil {
			return nil, nil, err
		}
		if len(runs) == 0 {
			return nil, nil, usagef("--last: there are no runs")
		}
		return starter.Get(c, runs[0].RunID, r.execution), args, nil
	}
	id, err := starter.Find(ctx, c, args[0])
	if err != nil {
		return nil, nil, err
	}
	return starter.Get(c, id, r.execution), args[1:], nil
}

// completionTakes is how long a shell waits for the IDs of runs.
const completionTakes = 2 * time.Second

// completeRun offers the IDs of the latest runs for the first argument.
func (a *app) completeRun(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTakes)
	defer cancel()
	c, _, err := a.dialExisting(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	runs, _ := starter.List(ctx, c, starter.ListOptions{Limit: 50})
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.RunID + "\t" + r.Command
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
