package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Terminate(a *cli.App) *cobra.Command {
	var (
		signal string
		grace  cli.Duration
		force  bool
		reason string
	)
	cmd := &cobra.Command{
		Use:   "terminate [flags] RUN [TASK...]",
		Short: "End tasks of a run, or all of them",
		Long: `Ends the named tasks; their exits do not count as failures. Without names it ends all
tasks, with SIGKILL by default. With auto_restart a terminated task restarts. A run whose
tasks have no place yet is cancelled.

` + cli.SeveralTasks + `

A run that nobody executes is ended on the server, and so is any run with --force. It then
has no result, and if it still has processes, their hosts stop them: at once, or when they
are back.

` + cli.ExitCodesOfRequests,
		Example: `  clusterrun terminate iris-x2k4 worker-1
  clusterrun terminate --signal SIGTERM --grace 5s iris-x2k4
  clusterrun terminate --force iris-x2k4`,
		Args: cli.SomeArgs(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, tasks := args[0], args[1:]
			if err := cli.CheckTasks(tasks); err != nil {
				return err
			}
			if force {
				if len(tasks) > 0 {
					return cli.Usagef("--force ends the whole run; leave the tasks out, or leave --force out")
				}
				return forceEnd(cmd.Context(), a, id, reason)
			}
			var g *spec.Duration
			if cmd.Flags().Changed("grace") {
				g = grace.Spec()
			}
			if len(tasks) == 0 {
				return terminateAll(cmd.Context(), a, id, spec.TerminateAllRequest{Signal: signal, Grace: g})
			}
			return cli.Request(cmd.Context(), a, id, "terminated", tasks, func(ctx context.Context, r *starter.Run, tasks []string) (spec.RequestAnswer, error) {
				return r.TerminateTask(ctx, spec.TaskRequest{Tasks: tasks, Signal: signal, Grace: g})
			})
		},
	}
	cmd.Flags().StringVar(&signal, "signal", "", "`SIGNAL` to send instead of the spec's stop signal, or without names instead of SIGKILL")
	cmd.Flags().Var(&grace, "grace", "`TIME` from the signal to SIGKILL, instead of the spec's")
	cmd.Flags().BoolVar(&force, "force", false, "end the run on the server, without a result")
	cmd.Flags().StringVar(&reason, "reason", "", "with --force: the reason, a `TEXT` for people")
	return cmd
}

// terminateAll ends all tasks of a run, or the run where nobody executes it, so that nobody would
// answer.
func terminateAll(ctx context.Context, a *cli.App, id string, q spec.TerminateAllRequest) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
	defer cancel()
	r := starter.Get(c, id, "")
	asking, nobodyAnswers := context.WithCancelCause(ctx)
	defer nobodyAnswers(nil)
	go func() {
		if starter.Get(c, id, "").AwaitUnexecuted(asking) == nil {
			nobodyAnswers(errNobodyExecutes)
		}
	}()
	answer, err := r.TerminateAll(asking, q)
	switch {
	case err == nil:
		return cli.PrintAnswer(a, id, "terminated", answer)
	case context.Cause(asking) != errNobodyExecutes:
		return err
	}
	ended, err := endUnexecuted(ctx, r)
	if err != nil {
		return err
	}
	return printStopped(a, ended)
}

var errNobodyExecutes = errors.New("nobody executes the run")

func forceEnd(ctx context.Context, a *cli.App, id, reason string) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if reason == "" {
		reason = "clusterrun terminate --force"
	}
	if err := starter.Get(c, id, "").Terminate(ctx, reason); err != nil {
		return err
	}
	if a.Global.JSON {
		return a.PrintJSON(map[string]string{"run_id": id, "state": stateTerminated})
	}
	fmt.Fprintf(a.Out, "terminated: %s\n", id)
	return nil
}
