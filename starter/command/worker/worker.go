package worker

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Worker(a *cli.App) *cobra.Command {
	var (
		f          workerFlags
		background Detached
		idleExit   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "Serve runs on this host, in the foreground or the background",
		Long:  checksText(), // for its help
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if idleExit < 0 {
				return cli.Usagef("--idle-exit %s: use a time such as 10m, or 0 for a worker that never exits", idleExit)
			}
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			o, err := f.options(a, cmd)
			if err != nil {
				return err
			}
			o.IdleExit = idleExit
			if o.Policy != "" && os.Geteuid() == 0 {
				// Users must be able to access their own files in this directory.
				if err := os.MkdirAll(a.Global.StateDir, 0o711); err != nil {
					return err
				}
			}
			if background.Parent() {
				return detachWorker(ctx, a, o.Queue)
			}
			background.CloseOnExec()
			return become(ctx, a, o, &background)
		},
	}
	cmd.AddCommand(workerUnitCommand(a), workerStopCommand(a), workerUpgradeCommand(a))
	background.Register(cmd, "it serves runs")
	cmd.Flags().DurationVar(&idleExit, "idle-exit", 0, "exit when no run has been on this host for this `TIME`; default: never")
	f.register(cmd)
	return cmd
}

// listenOff is the value of --listen for a host that serves nothing.
const listenOff = "off"

// listenAddress returns the output address of a host worker of server s. If the server is on this
// machine, its clients are also on it, and read the files directly.
func listenAddress(given string, s cli.Target) (string, error) {
	switch given {
	case listenOff:
		return "", nil
	case "":
		address, err := s.HostPort()
		if host, _, splitErr := net.SplitHostPort(address); err != nil || splitErr == nil && spec.IsLoopback(host) {
			return "", err
		}
		return ":0", nil
	}
	return given, nil
}

// become turns this process into a host worker's supervisor.
func become(ctx context.Context, a *cli.App, o workers.Options, b *Detached) error {
	// The reader of our messages must not delay tasks or the exit.
	a.Printer.SetAside()
	defer a.Printer.Hurry()
	s, err := a.BringUp(ctx)
	if err != nil {
		return err
	}
	if o.Role != workers.RoleController {
		if err := o.CheckSockets(); err != nil {
			return err
		}
	}
	o.Server = s.Options
	if o.Listen, err = listenAddress(o.Listen, s); err != nil {
		return err
	}
	if s.Embedded {
		home := a.Home()
		o.Home = &home
	}
	if c, err := connect.Dial(ctx, s.Options, a.Logger(), cli.DialTimeout); err != nil {
		// At boot the server may start later than we do.
		a.Say("%s\nwaiting for it", err)
	} else {
		err := o.CheckAllowed(ctx, c)
		if err == nil {
			cli.EndAbandoned(ctx, a, c, s)()
			if o.Role != workers.RoleController {
				err = o.CheckName(ctx, c)
			}
		}
		c.Close()
		if err != nil {
			return err
		}
	}
	what := "host worker"
	if o.Role == workers.RoleController {
		what = "controller"
	}
	program, err := ownProgram()
	if err != nil {
		return err
	}
	settings, err := workers.Supervisor(o)
	if err != nil {
		return err
	}
	settings.Service = workers.Service(program)
	ends := "Ctrl-C"
	if b.child() {
		ends = "`clusterrun worker stop`"
	}
	a.Say("%s for the queue %s of %s; %s stops it", what, o.Queue, s, ends)
	a.Printer.Hurry()
	a.Printer.Flush()
	if ctx.Err() != nil {
		return nil // an earlier signal
	}
	return settings.Exec(b.ready)
}
