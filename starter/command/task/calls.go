package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// exitBroken is the exit code for a broken barrier.
const exitBroken = 1

// hostPatience limits how long a call waits for a host worker that is temporarily absent.
const hostPatience = time.Minute

// currentTask returns this process's task.
func currentTask() (*task.Task, error) {
	t, err := task.Current()
	if errors.Is(err, task.ErrNotATask) {
		return nil, cli.Usagef("CLUSTERRUN_SOCKET is not set: this command is for programs that are a run's tasks, such as in `clusterrun run -n 2 -- bash -c 'clusterrun task ...'`")
	}
	return t, err
}

// fromToArgs checks the number of positional arguments. what names the first.
func fromToArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > most {
			return cli.Usagef("unexpected argument %q; usage: %s", args[most], cmd.UseLine())
		}
		return cli.SomeArgs(least, what)(cmd, args)
	}
}

// asTask calls the host on behalf of this process's task.
func asTask(cmd *cobra.Command, call func(context.Context, *task.Task) error) error {
	t, err := currentTask()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), hostPatience)
	defer cancel()
	err = call(ctx, t)
	if refused, ok := errors.AsType[*task.APIError](err); ok && refused.Field != "" {
		return cli.Usagef("%s", refused.Message)
	}
	return err
}

// plainCommand returns a command without arguments that calls the host on behalf of this
// process's task.
func plainCommand(use, short string, call func(context.Context, *task.Task) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " [flags]",
		Short: short,
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return asTask(cmd, call) },
	}
}

// maxInput limits the bytes read from stdin. It exceeds the limits of hosts.
const maxInput = 1 << 20

// argumentOrStdin returns a positional argument or, if it is -, the content of stdin. It reads
// up to maxInput+1 bytes, so that callers can refuse longer input.
func argumentOrStdin(a *cli.App, arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	b, err := io.ReadAll(io.LimitReader(a.In, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return b, nil
}

func taskResultCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "result [flags] VALUE",
		Short: "Set the task's result",
		Args:  cli.OneArg("VALUE"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runTaskResult(a, cmd, args) },
	}
}

// runTaskResult implements [taskResultCommand].
func runTaskResult(a *cli.App, cmd *cobra.Command, args []string) error {
	value, err := argumentOrStdin(a, args[0])
	if err != nil {
		return err
	}
	if len(value) > maxInput {
		return cli.Usagef("the result exceeds the limit of %d bytes: write it to the file named by CLUSTERRUN_RESULT_FILE instead", maxInput)
	}
	if !json.Valid(value) {
		return cli.Usagef(`the result is not a single JSON value; a string needs its own quotes, as in '"done"'`)
	}
	return asTask(cmd, func(ctx context.Context, t *task.Task) error { return t.Result(ctx, json.RawMessage(value)) })
}

func taskErrorCommand(a *cli.App) *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "error [flags] MESSAGE",
		Short: "Report why the task is about to fail",
		Args:  cli.OneArg("MESSAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			message, err := argumentOrStdin(a, args[0])
			if err != nil {
				return err
			}
			if len(message) == 0 {
				return cli.Usagef("MESSAGE is empty; describe the problem")
			}
			return asTask(cmd, func(ctx context.Context, t *task.Task) error {
				return t.Report(ctx, task.Report{Kind: kind, Message: string(message)})
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "`KIND` of the error, such as IOError")
	return cmd
}

func taskProgressCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "progress [flags] CURRENT [TOTAL [MESSAGE]]",
		Short: "Report the task's progress",
		Args:  fromToArgs(1, 3, "CURRENT"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runTaskProgress(cmd, args) },
	}
}

// runTaskProgress implements [taskProgressCommand].
func runTaskProgress(cmd *cobra.Command, args []string) error {
	current, err := parseAmount("CURRENT", args[0])
	if err != nil {
		return err
	}
	total, message := 0.0, ""
	if len(args) > 1 {
		if total, err = parseAmount("TOTAL", args[1]); err != nil {
			return err
		}
	}
	if len(args) > 2 {
		message = args[2]
	}
	return asTask(cmd, func(ctx context.Context, t *task.Task) error { return t.Progress(ctx, current, total, message) })
}

// parseAmount parses a number for progress.
func parseAmount(what, text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= math.MaxFloat64) { // also refuses NaN
		return 0, cli.Usagef("%s %q is not a number from 0", what, text)
	}
	return n, nil
}

func taskInfoCommand(a *cli.App) *cobra.Command {
	return plainCommand("info", "Show which task of which run this is", func(ctx context.Context, t *task.Task) error {
		info, err := t.Info(ctx)
		if err != nil {
			return err
		}
		return a.PrintLine(info, "%s of run %s: rank %d of %d, restart %d, on host %s at %s",
			info.Task, info.Run, info.Rank, info.WorldSize, info.RestartCount, info.Host, info.Address)
	})
}
