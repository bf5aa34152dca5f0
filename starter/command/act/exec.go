package act

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/remotecommand"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Exec(a *cli.App) *cobra.Command {
	o := &execOptions{}
	cmd := &cobra.Command{
		Use:   "exec [flags] RUN TASK [-- COMMAND [ARG...]]",
		Short: "Run a shell or a command with a running task",
		Args:  o.choice.Args(cli.SomeArgs(2, "RUN or TASK")),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.forced = cmd.Flags().Changed("tty")
			return runExec(cmd.Context(), a, args, o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVarP(&o.tty, "tty", "t", false, "give the command a terminal, or none with --tty=false. Default: if stdin and stdout are terminals")
	cmd.Flags().BoolP("stdin", "i", true, "pass stdin, which is always done")
	_ = cmd.Flags().MarkHidden("stdin") // for those used to -it
	o.choice.Flags(cmd)
	o.sign.Register(cmd.Flags(), "")
	return cmd
}

// execOptions are the flags of [Exec].
type execOptions struct {
	tty, forced bool
	choice      cli.RunChoice
	sign        specs.Signing
}

// runExec implements [Exec].
func runExec(ctx context.Context, a *cli.App, args []string, o *execOptions) error {
	before := 2
	if o.choice.Last {
		before = 1
	}
	task, command := args[before-1], args[before:]
	if len(command) > 0 {
		switch word := command[0]; {
		case word == "--":
			command = command[1:]
		case strings.HasPrefix(word, "-"):
			return cli.Usagef("%s: flags come before RUN; write -- before a command that begins so", word)
		}
	}
	if err := cli.CheckTasks([]string{task}); err != nil {
		return err
	}
	return cli.Look(ctx, a, &o.choice, args, func(run *starter.Run, _ []string) error {
		start := remotecommand.Start{Secret: rand.Text(), Command: command}
		way, err := allowed(ctx, run, task, &start, o)
		if err != nil {
			return err
		}
		return execute(ctx, a, way, start, o)
	})
}

// allowed asks the run for the way to the host of a task, and signs the command.
func allowed(ctx context.Context, run *starter.Run, task string, start *remotecommand.Start, o *execOptions) (way spec.RequestAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
	defer cancel()
	names, err := cli.TasksOf(ctx, run, []string{task})
	if err != nil {
		return way, err
	}
	key := hostservice.KeyOf(start.Secret)
	if o.sign.Wanted() {
		if start.Signature, err = o.sign.SignExec(run.ID, names[0], key, start.Command); err != nil {
			return way, err
		}
	}
	way, err = starter.Ask(ctx, run, spec.UpdateExec, spec.ExecRequest{Task: names[0], Key: key})
	if err == nil && way.Service == nil {
		err = fmt.Errorf("run %s gives no way to the host of %s", run.ID, names[0])
	}
	if err != nil {
		return way, notRunning(ctx, run, names[0], err)
	}
	return way, nil
}

// notRunning explains an error with the end of the task, if it has ended.
func notRunning(ctx context.Context, run *starter.Run, task string, err error) error {
	if !starter.IsError[*starter.RefusedError](err) && !starter.IsError[*starter.EndedError](err) {
		return err
	}
	s, statusErr := run.Status(ctx)
	if statusErr != nil {
		return err
	}
	at := slices.IndexFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.Name == task })
	if at < 0 || s.Tasks[at].Exit == nil {
		return err
	}
	exit := s.Tasks[at].Exit
	text := fmt.Sprintf("%s of run %s is not running: it ended %s ago with %s", task, run.ID, cli.Ago(time.Now(), exit.Ended), outcome.Short(*exit))
	if s.Open {
		text += fmt.Sprintf("; `clusterrun start %s %s` starts it", run.ID, task)
	}
	return &cli.ExitError{Code: exitcode.Machinery, Cause: errors.New(text)}
}

// execute executes the command over the host service, with the streams of this command.
func execute(ctx context.Context, a *cli.App, way spec.RequestAnswer, start remotecommand.Start, o *execOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := newTTY(a, o.tty, o.forced)
	start.Terminal, start.Term = t.size(), os.Getenv("TERM")
	signals := t.watch(cancel)
	defer t.restore()
	client := hostservice.NewExecClient(*way.Service, way.Through)
	end, err := client.Exec(ctx, remotecommand.Client{
		In: a.In, Out: a.Out, Err: a.Err, Sizes: t.sizes, Signals: signals, Started: t.begin,
	}, start)
	t.restore()
	switch {
	case t.endedBy.Load() != 0:
		return &cli.ExitError{Code: exitcode.OfSignal(int(t.endedBy.Load()))}
	case errors.Is(err, remotecommand.ErrCut):
		return &cli.ExitError{Code: exitcode.Machinery, Cause: fmt.Errorf("host %s: the connection was cut, which ends the command", way.Service.Host)}
	case err != nil:
		return &cli.ExitError{Code: exitcode.Machinery, Cause: err}
	case end.Why != "":
		return &cli.ExitError{Code: end.Code, Cause: errors.New(end.Why)}
	case end.Code != 0:
		return &cli.ExitError{Code: end.Code}
	}
	return nil
}
