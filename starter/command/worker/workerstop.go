package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

// workerStopBound exceeds the time for processes to stop before SIGKILL and for the host worker
// to report how they ended.
const workerStopBound = time.Minute

func workerStopCommand(a *cli.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "End the host worker of the state directory",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return stopHostWorker(cmd.Context(), a, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also stop the processes of its tasks")
	return cmd
}

func stopHostWorker(ctx context.Context, a *cli.App, force bool) error {
	dir := a.WorkerDir()
	ctx, cancel := context.WithTimeout(ctx, workerStopBound)
	defer cancel()
	pid := supervisor.Holder(dir)
	if pid == 0 {
		return a.Print(map[string]any{"pid": nil}, func() { a.Say("no host worker uses %s", dir) })
	}
	// The lock keeps submit from counting on this host worker.
	wanted, err := workers.Want(ctx, dir)
	if err != nil {
		return fmt.Errorf("the host worker with pid %d is being started, or about to end: %w", pid, err)
	}
	defer wanted.Close()
	if pid = supervisor.Holder(dir); pid == 0 {
		return nil // it was about to end
	}
	held, err := workers.Held(dir)
	if err != nil && !force {
		return fmt.Errorf("whether the host worker with pid %d has tasks is not known: %w; --force ends it all the same", pid, err)
	}
	if len(held) > 0 && !force {
		return fmt.Errorf("the host worker with pid %d has tasks of %s; wait for them, end them with `clusterrun stop`, or give --force, which stops their processes", pid, heldRuns(held))
	}
	if err := endWorker(ctx, dir, pid); err != nil {
		return err
	}
	return a.Print(map[string]any{"pid": pid}, func() { a.Say("the host worker with pid %d has ended", pid) })
}

const (
	// ConfirmWithin is the time in which a user must confirm that all runs shall end.
	ConfirmWithin = 5 * time.Second
	// ListBound is the longest time to wait for the server to list the runs.
	ListBound = 2 * time.Second
	// ListMost bounds the runs that are counted, and NamesMost those that are named.
	ListMost  = 1000
	NamesMost = 10
)
