package worker

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// makeWayBound limits how long a host worker without tasks takes to exit.
const makeWayBound = 20 * time.Second

const workerDaemon = "worker"

// detachWorker executes this command in the background.
func detachWorker(ctx context.Context, a *cli.App, queue string) error {
	if _, _, err := a.External(ctx); err != nil {
		return err
	}
	lock, err := lockWorker(ctx, a)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	defer lock.Close()
	if pid := supervisor.Holder(a.WorkerDir()); pid != 0 {
		return a.Print(map[string]any{"pid": pid}, func() {
			a.Say("a host worker is already running as process %d; stop it with `clusterrun worker stop`", pid)
		})
	}
	pid, _, err := startDaemon(ctx, a, workerDaemon, itself(a.Args))
	if err != nil {
		return err
	}
	sayEndsWith(a)
	stop := "clusterrun worker stop"
	if a.Given.Changed("state-dir") {
		stop += " --state-dir " + shellword.Of(a.Global.StateDir)
	}
	log := daemonLog(a, workerDaemon)
	return a.PrintLine(map[string]any{"pid": pid, "queue": queue, "log": log, "started": time.Now()},
		"Host worker      process %d, for the queue %s; stop it with `%s`\nLog              %s", pid, queue, stop, log)
}

// sayEndsWith reports what stops a background process started by this command.
func sayEndsWith(a *cli.App) {
	if what := supervisor.EndsWith(); what != "" {
		a.Say("it also stops with %s", what)
	}
}

// MakeWay stops the state directory's host worker in the background, if it is idle.
func MakeWay(ctx context.Context, a *cli.App) error {
	dir := a.WorkerDir()
	pid := supervisor.Holder(dir)
	if pid == 0 {
		return nil
	}
	lock, err := lockWorker(ctx, a)
	if err != nil {
		return err
	}
	defer lock.Close()
	held, err := workers.HeldRuns(dir)
	if err != nil || len(held) > 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, makeWayBound)
	defer cancel()
	a.Say("stopping the idle host worker with pid %d", pid)
	return endWorker(ctx, dir, pid)
}

// endWorker asks a state directory's supervisor to stop everything, and returns when it has
// exited.
func endWorker(ctx context.Context, dir string, pid int) error {
	if err := supervisor.RequestEnd(ctx, dir, pid); err != nil {
		return fmt.Errorf("the host worker with pid %d cannot be stopped: %w", pid, err)
	}
	_ = os.Remove(submittedFile(dir)) // it is not to be revived
	return nil
}

// heldRuns returns the names of runs for a message.
func heldRuns(held []runkey.Run) string {
	names := list.Of(held, func(run runkey.Run) string { return run.WorkflowID })
	slices.Sort(names)
	return units.Count(len(names), "run", "runs") + " (" + shorten.List(names, NamesMost) + ")"
}
