package devserver

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes of the command.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
)

const longHelp = `A Temporal server with its Web UI in one process, for one user on one machine,
configured for the latencies that clusterrun needs. It listens on loopback only.

Everything is stored in the --db file (SQLite) and survives the server, even if it
is killed: start it again with the same file, and the runs continue. Only one server
at a time can use a file.

It prints one line to stdout when clients can connect, and everything else to
stderr. SIGTERM and SIGINT stop it cleanly.

Exit codes:
  0  stopped as requested, by a signal, --idle-exit or --lifeline-fd
  1  failed: a port is taken, the database is in use or belongs to another program, ...
  2  a mistake in the command line`

const examples = `  # On the usual ports.
  clusterrun-devserver --db runs.db

  # Exits after ten idle minutes.
  clusterrun-devserver --db runs.db --port 0 --headless --idle-exit 10m --ready-file ready.json

  # Stops with the program that started it, which holds the other end of descriptor 3.
  clusterrun-devserver --db runs.db --port 0 --ui-port 0 --lifeline-fd 3`

// Main runs the command and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	cmd := newCommand(stdout, stderr)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(context.Background())

	var usage usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "clusterrun-devserver: %v\nSee clusterrun-devserver --help.\n", err)
		return ExitUsage
	default:
		fmt.Fprintf(stderr, "clusterrun-devserver: %v\n", err)
		return ExitFailure
	}
}

func newCommand(stdout, stderr io.Writer) *cobra.Command {
	opts := DefaultOptions()
	cmd := &cobra.Command{
		Use:           "clusterrun-devserver",
		Short:         "A Temporal server with its Web UI, for one user on one machine",
		Long:          longHelp,
		Example:       examples,
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Run(cmd.Context(), opts, stdout, stderr)
		},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })

	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.Database, "db", opts.Database, "database `FILE`, created if missing")
	f.StringVar(&opts.IP, "ip", opts.IP, "loopback `ADDRESS` to listen on")
	f.IntVar(&opts.Port, "port", opts.Port, "`PORT` of the Temporal frontend; 0 picks a free one")
	f.IntVar(&opts.UIPort, "ui-port", opts.UIPort, "`PORT` of the Web UI; 0 picks a free one")
	f.BoolVar(&opts.Headless, "headless", opts.Headless, "no Web UI")
	f.StringVar(&opts.Namespace, "namespace", opts.Namespace, "`NAME` of the namespace, created if missing")
	f.DurationVar(&opts.Retention, "retention", opts.Retention, "how long closed runs are kept, as a `DURATION`; applies when the namespace is created")
	f.DurationVar(&opts.IdleExit, "idle-exit", opts.IdleExit, "stop after this `DURATION` without client requests; 0 means never")
	f.StringVar(&opts.ReadyFile, "ready-file", opts.ReadyFile, "write address and pid as JSON to this `FILE` once clients can connect; removed when the server stops cleanly")
	f.StringVar(&opts.Key, "key", opts.Key, "certificate and key, in a `FILE`, of the server and its clients; created if missing. Without it every user of this machine may")
	f.StringVar(&opts.Metrics, "metrics", opts.Metrics, "serve the server's metrics for Prometheus at this `ADDRESS`, to anyone who can reach it")
	f.StringVar(&opts.UIFor, "ui-for", opts.UIFor, "serve only a Web UI, for the server at this `ADDRESS`")
	f.IntVar(&opts.LifelineFD, "lifeline-fd", opts.LifelineFD, "stop when this inherited file descriptor `N` reaches end of file; -1 means none")
	f.StringVar(&opts.LogLevel, "log-level", opts.LogLevel, "`LEVEL` of the server's log on stderr: debug, info, warn, error")
	f.BoolVar(&opts.JSON, "json", opts.JSON, "print the ready line as JSON")
	return cmd
}
