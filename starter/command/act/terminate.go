package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Terminate(a *cli.App) *cobra.Command {
	var o terminateOptions
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
			return terminate(cmd.Context(), a, args[0], args[1:], o)
		},
	}
	o.how.register(cmd, ", or without names instead of SIGKILL")
	cmd.Flags().BoolVar(&o.force, "force", false, "end the run on the server, without a result")
	cmd.Flags().StringVar(&o.reason, "reason", "", "with --force: the reason, a `TEXT` for people")
	return cmd
}

// terminateOptions are the flags of terminate.
type terminateOptions struct {
	how    endFlags
	force  bool
	reason string
}

// terminate ends tasks of a run, or all of them if none are named.
func terminate(ctx context.Context, a *cli.App, id string, tasks []string, o terminateOptions) error {
	switch {
	case o.force && len(tasks) > 0:
		return cli.Usagef("--force ends the whole run; leave the tasks out, or leave --force out")
	case o.force:
		return forceEnd(ctx, a, id, cmp.Or(o.reason, "clusterrun terminate --force"))
	case len(tasks) == 0:
		return terminateAll(ctx, a, id, spec.TerminateAllRequest{Signal: o.how.signal, Grace: o.how.given()})
	}
	return cli.Request(ctx, a, id, "terminated", tasks, func(ctx context.Context, r *starter.Run, tasks []string) (spec.RequestAnswer, error) {
		return r.TerminateTask(ctx, spec.TaskRequest{Tasks: tasks, Signal: o.how.signal, Grace: o.how.given()})
	})
}

// terminateAll ends all tasks of a run, or the run if no worker executes it and answers.
func terminateAll(ctx context.Context, a *cli.App, id string, q spec.TerminateAllRequest) error {
	return cli.WithRun(ctx, a, id, func(ctx context.Context, r *starter.Run) error {
		asking, nobodyAnswers := context.WithCancelCause(ctx)
		defer nobodyAnswers(nil)
		go func() {
			if r.AwaitUnexecuted(asking) == nil {
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
	})
}

var errNobodyExecutes = errors.New("nobody executes the run")

// forceEnd ends a run on the server.
func forceEnd(ctx context.Context, a *cli.App, id, reason string) error {
	return cli.WithRun(ctx, a, id, func(ctx context.Context, r *starter.Run) error {
		if err := r.Terminate(ctx, reason); err != nil {
			return err
		}
		if a.Global.JSON {
			return a.PrintJSON(map[string]string{"run_id": id, "state": stateTerminated})
		}
		fmt.Fprintf(a.Out, "terminated: %s\n", id)
		return nil
	})
}
