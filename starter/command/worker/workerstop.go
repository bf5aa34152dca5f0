package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

// workerStopBound limits how long a host worker without processes takes to report their exits,
// and to exit.
const workerStopBound = time.Minute

func workerStopCommand(a *cli.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the state directory's host worker",
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
	pid := supervisor.Holder(dir)
	if pid == 0 {
		return a.Print(map[string]any{"pid": nil}, func() { a.Say("no host worker uses %s", dir) })
	}
	// The lock keeps submit from counting on this host worker.
	lock, err := lockWorker(ctx, a)
	if err != nil {
		return err
	}
	defer lock.Close()
	if pid = supervisor.Holder(dir); pid == 0 {
		return nil // the host worker was about to exit
	}
	held, err := workers.HeldRuns(dir)
	if err != nil && !force {
		return fmt.Errorf("cannot tell whether the host worker with pid %d has tasks: %w; --force stops it anyway", pid, err)
	}
	if len(held) > 0 && !force {
		return fmt.Errorf("the host worker with pid %d has tasks of %s; wait for them, stop them with `clusterrun stop`, or use --force, which stops their processes", pid, heldRuns(held))
	}
	for {
		ending, cancel := context.WithTimeout(ctx, workerStopBound)
		err = endWorker(ending, dir, pid)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil || !hasProcesses(dir) {
			return err
		}
		a.Say("the host worker with pid %d is waiting for its tasks' grace periods", pid)
	}
	return a.Print(map[string]any{"pid": pid}, func() { a.Say("the host worker with pid %d has exited", pid) })
}

// hasProcesses reports whether a state directory's journals contain a process without an exit.
func hasProcesses(dir string) bool {
	all, err := supervisor.Journalled(dir)
	return err == nil && slices.ContainsFunc(all, func(p supervisor.Process) bool { return p.Exit == nil })
}

const (
	// ConfirmWithin is how soon a user must confirm that all runs are to be stopped.
	ConfirmWithin = 5 * time.Second
	// ListBound limits the wait for the server to list the runs.
	ListBound = 2 * time.Second
	// ListMost limits the runs that are counted, and NamesMost those that are named.
	ListMost  = 1000
	NamesMost = 10
)
