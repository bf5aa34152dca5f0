package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func devStopCommand(a *cli.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the state directory's `clusterrun dev`",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return stopDev(cmd.Context(), a, force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "also stop the processes of its runs")
	return cmd
}

// stopDev signals dev until it has exited, because the first signal is not enough if runs are open.
func stopDev(ctx context.Context, a *cli.App, force bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*devStop)
	defer cancel()
	pid := 0
	for {
		held, err := filelock.IsHeld(filepath.Join(a.Global.StateDir, cli.DevLock))
		switch {
		case err != nil:
			return err
		case !held && pid == 0:
			return a.Print(map[string]any{"pid": nil}, func() { a.Say("no `clusterrun dev` uses %s", a.Global.StateDir) })
		case !held:
			return a.Print(map[string]any{"pid": pid}, func() { a.Say("`clusterrun dev` (pid %d) has exited", pid) })
		case pid == 0 && !force:
			if err := noneOpen(ctx, a); err != nil {
				return err
			}
		}
		if pid, err = strconv.Atoi(cli.DevPID(a.Global.StateDir)); err == nil {
			err = syscall.Kill(pid, syscall.SIGTERM)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("`clusterrun dev` (pid %s) cannot be stopped: %w", cli.DevPID(a.Global.StateDir), err)
		}
		if retry.Sleep(ctx, 5*cli.SameSignal) != nil {
			return fmt.Errorf("`clusterrun dev` (pid %d) did not exit within %s", pid, 2*devStop)
		}
	}
}

// noneOpen returns an error if runs would be stopped with dev.
func noneOpen(ctx context.Context, a *cli.App) error {
	s, err := a.Home().Find(ctx)
	if err != nil || s == nil {
		return err
	}
	c, err := a.DialOnce(ctx, a.Embedded(s))
	if err != nil {
		return err
	}
	defer c.Close()
	names, err := openRuns(ctx, c)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s processes would be stopped with `clusterrun dev`: wait for them, stop them with `clusterrun stop`, or use --force", stillOpen(names))
	}
	return err
}
