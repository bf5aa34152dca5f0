package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// upgradePatience limits the wait for an upgrade's outcome.
const upgradePatience = time.Minute

func workerUpgradeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade the running worker to the program on disk",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runWorkerUpgrade(cmd.Context(), a) },
	}
}

// runWorkerUpgrade implements [workerUpgradeCommand].
func runWorkerUpgrade(ctx context.Context, a *cli.App) error {
	ctx, cancel := context.WithTimeout(ctx, upgradePatience)
	defer cancel()
	before, after, err := supervisor.RequestUpgrade(ctx, a.WorkerDir())
	switch {
	case errors.Is(err, supervisor.ErrNoSupervisor):
		return fmt.Errorf("no host worker uses %s; start one with `clusterrun worker`, or name its --state-dir", a.WorkerDir())
	case errors.Is(err, supervisor.ErrNotUpgradable):
		return fmt.Errorf("the host worker with pid %d cannot be upgraded in place, because submit started it or its version is too old; end it, which stops its tasks, and start it again", before.PID)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the host worker with pid %d does not report whether it was upgraded; see its log", before.PID)
	case err != nil:
		return err
	case after.Error != "":
		return fmt.Errorf("the host worker with pid %d was not upgraded and continues with clusterrun %s: %s", after.PID, after.Version, after.Error)
	}
	return a.Print(after, func() {
		a.Say("the host worker with pid %d is now clusterrun %s (before: %s); %s", after.PID, after.Version, before.Version, units.Count(after.Living, "process continues", "processes continue"))
		if after.Supervisor != after.Version {
			a.Say("its supervisor remains clusterrun %s and exits when no run is open on this host; start it again then, unless a service manager does", after.Supervisor)
		}
	})
}

// ownProgram returns the path of this program that an upgrade will replace. It may be a symbolic
// link.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find our own executable: %w", err)
	}
	if named, err := exec.LookPath(os.Args[0]); err == nil {
		// The parent process may have passed any name in os.Args[0].
		if named, err = filepath.Abs(named); err == nil && sameFile(self, named) {
			return named, nil
		}
	}
	return self, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
