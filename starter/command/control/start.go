package control

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Start(a *cli.App) *cobra.Command {
	var o startOptions
	cmd := &cobra.Command{
		Use:   "start [flags] RUN TASK [-- COMMAND [ARG...]]",
		Short: "Start a task that has exited, or a new one",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(cli.SpecExtensions, filepath.Ext(args[0])) {
				return cli.Usagef("%s is a file, but start starts a run's tasks; `clusterrun run %s` starts a run", args[0], args[0])
			}
			return o.runs.Args(cli.SomeArgs(2, "RUN or TASK"))(cmd, args)
		},
		RunE: func(cmd *cobra.Command, positional []string) error {
			return runStart(cmd.Context(), a, cmd, positional, &o)
		},
	}
	cmd.Flags().StringArrayVar(&o.args, "arg", nil, "pass this `ARGUMENT` to the command, and none from the spec; may be repeated")
	cmd.Flags().StringArrayVar(&o.env, "env", nil, "a variable for the process, as `NAME=VALUE`; may be repeated")
	specs.SecretFlag(cmd.Flags(), &o.secrets)
	cmd.Flags().StringVar(&o.dir, "dir", "", "run in `DIRECTORY` instead of the task's")
	cmd.Flags().BoolVar(&o.gap, "new", false, "allow an index that leaves a gap after the type's other indexes")
	o.runs.Flags(cmd)
	o.g.Register(cmd.Flags(), "")
	return cmd
}

// startOptions holds the flags of [Start].
type startOptions struct {
	runs               cli.RunSelector
	args, env, secrets []string
	dir                string
	gap                bool
	g                  specs.Signing
}

// runStart implements [Start].
func runStart(ctx context.Context, a *cli.App, cmd *cobra.Command, positional []string, o *startOptions) error {
	words := o.runs.Rest(positional)
	task, command := words[0], words[1:]
	if _, _, err := spec.ParseTaskName(task); err != nil {
		return cli.Usagef("%s", err)
	}
	if len(command) > 0 && cmd.ArgsLenAtDash() != len(positional)-len(command) {
		return cli.Usagef("unexpected argument %q; write a command after --", command[0])
	}
	q := spec.StartTaskRequest{Task: task, Command: command, Dir: o.dir, Env: spec.Env{}, New: o.gap}
	if cmd.Flags().Changed("arg") {
		q.Args = o.args
	}
	for _, text := range o.env {
		name, value, err := specs.ParseEnv(text)
		if err != nil {
			return cli.Usagef("%s", err)
		}
		q.Env[name] = spec.Variable{Value: value}
	}
	for _, text := range o.secrets {
		name, v, err := specs.ParseSecret(text)
		if err != nil {
			return cli.Usagef("%s", err)
		}
		q.Env[name] = v
	}
	return cli.WithRun(ctx, a, &o.runs, positional, func(r *starter.Run, _ []string) error {
		if o.g.Wanted() {
			if err := o.g.SignStart(r.ID, &q); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
		defer cancel()
		answer, err := starter.Ask(ctx, r, spec.UpdateStartTask, q)
		if err != nil {
			return err
		}
		return cli.PrintAnswer(a, r.ID, "started", answer)
	})
}
