package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

// optionsVariable carries the options of a host worker to `supervise`, as JSON.
const optionsVariable = "CLUSTERRUN_WORKER_OPTIONS"

// ownersSideFlag makes `supervise` leave the side to the process of its owner.
const ownersSideFlag = "owners-side"

// Supervise returns the command that run and dev execute: the supervisor of a
// private host worker. Its parent holds the other end of its lifeline.
func Supervise(a *cli.App) *cobra.Command {
	var ownersSide bool
	cmd := &cobra.Command{
		Use:    "supervise",
		Short:  "The supervisor of a host worker; started by run and dev",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return runSupervise(cmd.Context(), ownersSide) },
	}
	cmd.Flags().BoolVar(&ownersSide, ownersSideFlag, false, "the side is in the process of the owner")
	return cmd
}

// runSupervise implements [Supervise].
func runSupervise(ctx context.Context, ownersSide bool) error {
	text, ok := os.LookupEnv(optionsVariable)
	if !ok {
		return cli.Usagef("supervise is started by clusterrun itself; use `clusterrun worker`")
	}
	// Processes of tasks must not inherit it.
	if err := os.Unsetenv(optionsVariable); err != nil {
		return err
	}
	var o workers.Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("%s: %w", optionsVariable, err)
	}
	syscall.CloseOnExec(cli.LifelineFD)
	lifeline := os.NewFile(cli.LifelineFD, "lifeline")
	if _, err := lifeline.Stat(); err != nil {
		return fmt.Errorf("supervise has no lifeline: %w", err)
	}
	ctx, stop := cli.EndedBy(ctx)
	defer stop()
	side, err := sideCommand()
	if err != nil {
		return err
	}
	owner := workers.Owner{Lifeline: lifeline}
	if ownersSide {
		syscall.CloseOnExec(cli.SideFD)
		owner.Side = os.NewFile(cli.SideFD, "side")
	}
	if o.Foreground != "" || o.Stdin != "" {
		owner.Stdin = os.NewFile(cli.StdinFD, "stdin")
	}
	if o.Foreground != "" || o.OwnersOutput {
		owner.Stdout, owner.Stderr = os.NewFile(cli.StdoutFD, "stdout"), os.NewFile(cli.StderrFD, "stderr")
	}
	return workers.Supervise(ctx, o, side, owner)
}

// sideCommand returns the command line of the Temporal-facing side, for the supervisor.
func sideCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	return []string{self, "side"}, nil
}

func Side(a *cli.App) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:    "side",
		Short:  "The Temporal-facing side of a host worker; started by its supervisor",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return workers.CheckSide(os.Stdout)
			}
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			return workers.Side(ctx)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "answer whether this program can be the side")
	return cmd
}
