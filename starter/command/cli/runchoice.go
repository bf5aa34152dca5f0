package cli

import (
	"context"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
)

// RunChoice holds the flags that choose the run of a command.
type RunChoice struct {
	Last      bool
	execution string
}

// OnRun makes cmd call do with the run that is its argument.
func OnRun(a *App, cmd *cobra.Command, do func(context.Context, *starter.Run) error) *cobra.Command {
	var choice RunChoice
	choice.Flags(cmd)
	cmd.Args = choice.Args(OneArg("RUN"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return Look(cmd.Context(), a, &choice, args, func(r *starter.Run, _ []string) error { return do(cmd.Context(), r) })
	}
	return cmd
}

// Look calls do with the run that args name and with the remaining arguments.
func Look(ctx context.Context, a *App, choice *RunChoice, args []string, do func(*starter.Run, []string) error) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r, args, err := choice.Find(ctx, c, args)
	if err != nil {
		return err
	}
	return do(r, args)
}

// Resolve is like the function [Resolve] for the runs that args and the flags name. With --last
// args are tasks of the latest run, if o allows tasks.
func (r *RunChoice) Resolve(ctx context.Context, c client.Client, args []string, o Choice) (*Chosen, error) {
	if r.Last {
		run, tasks, err := r.Find(ctx, c, args)
		return &Chosen{Runs: []*starter.Run{run}, Tasks: tasks}, err
	}
	chosen, err := Resolve(ctx, c, args, o)
	switch {
	case err != nil || r.execution == "":
	case len(chosen.Runs) > 1:
		err = Usagef("--execution is of one run, and there are %d; name one run", len(chosen.Runs))
	default:
		chosen.Runs[0] = starter.Get(c, chosen.Runs[0].ID, r.execution)
	}
	return chosen, err
}

func (r *RunChoice) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.execution, "execution", "", "the execution `ID` (Temporal's run ID), of several with the same run ID")
	cmd.Flags().BoolVar(&r.Last, "last", false, "the latest run, instead of RUN")
}

// Args checks arguments with check. --last counts as the argument RUN.
func (r *RunChoice) Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("execution") && uuid.Validate(r.execution) != nil {
			return Usagef("--execution %q: give the ID of an execution, such as 0190c7a5-3c5e-7d1f-8a2b-4c6d8e0f1a2b, which `clusterrun list --json` and the Web UI show", r.execution)
		}
		if r.Last {
			args = append([]string{"last"}, args...)
		}
		return check(cmd, args)
	}
}

// Find returns the run that args name, and the remaining arguments. RUN may be the beginning of
// an ID. Commands that change a run do not call Find: they take complete IDs only.
func (r *RunChoice) Find(ctx context.Context, c client.Client, args []string) (*starter.Run, []string, error) {
	if r.Last {
		runs, err := starter.List(ctx, c, starter.ListOptions{Limit: 1})
		if err != nil {
			return nil, nil, err
		}
		if len(runs) == 0 {
			return nil, nil, Usagef("--last: there are no runs")
		}
		return starter.Get(c, runs[0].RunID, r.execution), args, nil
	}
	id, err := starter.Find(ctx, c, args[0])
	if err != nil {
		return nil, args, err
	}
	return starter.Get(c, id, r.execution), args[1:], nil
}
