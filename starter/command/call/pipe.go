package call

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/coordinate"
)

func pipeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "pipe RUN",
		Short: "Call functions, with lines of JSON on stdin and stdout",
		Args:  cli.OneArg("RUN"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runPipe(cmd.Context(), a, args) },
	}
}

// runPipe implements [pipeCommand].
func runPipe(ctx context.Context, a *cli.App, args []string) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	q, err := starter.Get(c, args[0], "").ClosureClient(ctx)
	if err != nil {
		return err
	}
	defer q.Close()
	go tellWaits(ctx, q.Status, func(text string) { a.Say("run %s: %s", args[0], text) })
	// A program that has died reads no answers; the closures that it scheduled stay scheduled.
	signal.Ignore(syscall.SIGPIPE)
	return coordinate.Serve(ctx, args[0], q, a.In, a.Out)
}
