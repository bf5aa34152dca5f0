package run

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/workers"
)

// RemoteHost returns the command that `clusterrun run` starts on other hosts through a launch
// agent.
func RemoteHost(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    remotehosts.Command,
		Short:  "A run's host; started by `clusterrun run -H` over ssh",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			// SIGPIPE must not kill this process. The reader of the connection detects that it is
			// broken.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			sweepHosts(a)
			return remotehosts.Serve(ctx, os.Stdin, os.Stdout, remotehosts.ServeConfig{
				Version: cli.VersionLine(), Parent: hostsDir(a), StartWorker: startRemoteWorker,
			})
		},
	}
}

// hostsDir returns the parent directory for other machines' runs.
func hostsDir(a *cli.App) string { return filepath.Join(a.Global.StateDir, "hosts") }

// startRemoteWorker starts the host worker for another machine's run.
func startRemoteWorker(o workers.Options, stdin *os.File, died func(error)) (remotehosts.Worker, error) {
	w, err := worker.StartHostWorker(o, worker.StandardFiles{In: stdin}, func(error) {})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := w.Err(); err != nil {
			died(err)
		}
	}()
	return w, nil
}

// sweepHosts removes what remains of other machines' runs after their program on this host was
// killed. It returns immediately.
func sweepHosts(a *cli.App) {
	dirs, err := rundir.Abandoned(hostsDir(a))
	if err != nil {
		return
	}
	go func() {
		for _, d := range dirs {
			if cli.Sweep(d.Path) {
				_ = d.Remove()
			}
		}
	}()
}
