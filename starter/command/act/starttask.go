package act

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func StartTask(a *cli.App) *cobra.Command {
	var (
		args, env, secrets []string
		dir                string
		gap                bool
		g                  specs.Signing
	)
	cmd := &cobra.Command{
		Use:   "start-task [flags] RUN TASK [-- COMMAND [ARG...]]",
		Short: "Start a task that has ended, or one outside the spec",
		Long: `Starts a task of the spec that has ended, or one outside the spec, which may be of a new
type, while the run is open. A command after -- replaces that of the task, and the
arguments of its type are then left out. The task has the environment of the run, not that
of this shell.

Its host first checks that the program and the directory exist. If not, the command says
so, and the run continues as before. The same happens if the index leaves a gap after the
existing tasks, unless --new is given.

A host with a policy requires a signature of this request; see --sign. Starting a task as
the spec has it needs no signature but that of the run.

` + cli.ExitCodesOfRequests,
		Example: `  clusterrun start-task iris-x2k4 worker-1
  clusterrun start-task iris-x2k4 evaluator-0 -- python3 evaluate.py`,
		Args: cli.SomeArgs(2, "RUN or TASK"),
		RunE: func(cmd *cobra.Command, positional []string) error {
			id, task, command := positional[0], positional[1], positional[2:]
			if _, isRank := cli.RankOf(task); isRank {
				return cli.Usagef("%s is a rank; write the name of the task, such as worker-%s", task, task)
			} else if err := cli.CheckTasks([]string{task}); err != nil {
				return err
			}
			if len(command) > 0 && cmd.ArgsLenAtDash() != 2 {
				return cli.Usagef("unexpected argument %q; write a command after --", command[0])
			}
			q := spec.StartTaskRequest{Task: task, Command: command, Dir: dir, Env: spec.Env{}, New: gap}
			if cmd.Flags().Changed("arg") {
				q.Args = args
			}
			for _, text := range env {
				name, value, err := specs.ParseEnv(text)
				if err != nil {
					return cli.Usagef("%s", err)
				}
				q.Env[name] = spec.Variable{Value: value}
			}
			for _, text := range secrets {
				name, v, err := specs.ParseSecret(text)
				if err != nil {
					return cli.Usagef("%s", err)
				}
				q.Env[name] = v
			}
			if g.Wanted() {
				if err := g.SignStart(id, &q); err != nil {
					return err
				}
			}
			return cli.Request(cmd.Context(), a, id, "started", nil, func(ctx context.Context, r *starter.Run, _ []string) (spec.RequestAnswer, error) {
				return r.StartTask(ctx, q)
			})
		},
	}
	cmd.Flags().StringArrayVar(&args, "arg", nil, "`ARGUMENT` of the command, instead of those of the task's type; may be repeated")
	cmd.Flags().StringArrayVar(&env, "env", nil, "a variable for the process, as `NAME=VALUE`; may be repeated")
	specs.SecretFlag(cmd.Flags(), &secrets)
	cmd.Flags().StringVar(&dir, "dir", "", "working `DIRECTORY` instead of the task's")
	cmd.Flags().BoolVar(&gap, "new", false, "allow an index that leaves a gap after the others of its type")
	g.Register(cmd.Flags(), "")
	return cmd
}
