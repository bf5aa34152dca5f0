package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/embedded"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// devStop bounds the end of dev: the worker's processes have two seconds of
// grace, and the server one and a half.
const devStop = 15 * time.Second

func (a *app) devCommand() *cobra.Command {
	var (
		port, uiPort int
		headless     bool
		host         string
		slots        int
	)
	cmd := &cobra.Command{
		Use:   "dev [flags]",
		Short: "A Temporal server, its Web UI and a host worker, in the foreground",
		Long: `Serves the embedded Temporal server with its Web UI, and runs that are submitted,
in the foreground until Ctrl-C. The database is the one that run uses: its earlier
runs are in the Web UI too.

Exit codes:
  0    stopped as asked
  2    mistake in the command line
  125  a port is taken, dev runs already, or something failed`,
		Example: "  clusterrun dev\n  clusterrun submit iris.yaml   # in another terminal",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, external, err := a.external(); err != nil {
				return err
			} else if external {
				return usagef("dev brings its own server, and another one is named (--address, TEMPORAL_ADDRESS or a profile); leave that out, or use `clusterrun worker` with it")
			}
			d := &dev{app: a, port: port, uiPort: uiPort, headless: headless,
				options: workers.Options{StateDir: a.devDir(), Host: host, Queue: spec.TaskQueue, Slots: slots, LogRoot: a.logsDir(), Debug: a.debug()}}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&port, "port", 7233, "`PORT` of the server")
	cmd.Flags().IntVar(&uiPort, "ui-port", 8233, "`PORT` of the Web UI")
	cmd.Flags().BoolVar(&headless, "headless", false, "no Web UI")
	cmd.Flags().StringVar(&host, "host-name", "", "`NAME` by which specs pin tasks to this host (default: the machine's)")
	cmd.Flags().IntVar(&slots, "slots", 0, "most tasks at a time (`NUMBER`); 0 for no bound")
	return cmd
}

// dev is one `clusterrun dev`.
type dev struct {
	*app
	port, uiPort int
	headless     bool
	options      workers.Options
}

func (d *dev) run(ctx context.Context) error {
	signals, stopListening := listen(interrupts)
	defer stopListening()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	unlock, err := d.alone()
	if err != nil {
		return err
	}
	defer unlock()
	own, up, err := d.server(ctx)
	if err != nil {
		return err
	}
	var serverExited <-chan error // blocks for ever where the server is not ours
	if own != nil {
		serverExited = own.Exited()
		defer d.stopServer(own)
	}
	d.options.Server = connect.Options{Address: up.Address, Namespace: up.Namespace}
	s := server{Options: d.options.Server, Embedded: true}
	c, err := connect.Dial(ctx, s.Options, d.logger(), dialTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	done := d.endAbandoned(ctx, c, s)
	if err := os.MkdirAll(d.options.StateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	w, err := startHostWorker(d.options, standardFiles{})
	if err != nil {
		return err
	}
	defer d.stopWorker(w)
	d.announce(up)
	done()

	select {
	case <-signals:
		d.say("stopping")
		return nil
	case err := <-serverExited:
		return fmt.Errorf("the embedded server ended by itself (%v); its log is %s", err, d.home().Log())
	case err := <-w.exited:
		w.exited <- err // stopWorker waits for it
		return fmt.Errorf("the host worker ended by itself (%v):\n%s", err, w.lastWords())
	}
}

// alone makes sure that this user has one dev only.
func (d *dev) alone() (unlock func(), err error) {
	if err := os.MkdirAll(d.global.stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	unlock, held, err := embedded.TryLock(filepath.Join(d.global.stateDir, "dev.lock"))
	if err == nil && held {
		err = fmt.Errorf("`clusterrun dev` runs already with the state directory %s; stop that one, or choose another with --state-dir", d.global.stateDir)
	}
	return unlock, err
}

// server starts the server in the foreground. A background server that nobody
// needs makes way for it; one that runs depend on is shared, because they know
// it by its port.
func (d *dev) server(ctx context.Context) (*embedded.Foreground, *embedded.Server, error) {
	start := func() (*embedded.Foreground, error) {
		var extra []string
		if d.headless {
			extra = append(extra, "--headless")
		}
		return d.home().StartForeground(ctx, d.port, d.uiPort, extra...)
	}
	own, err := start()
	var taken *embedded.TakenError
	if errors.As(err, &taken) {
		users, livingErr := d.users()
		switch {
		case livingErr != nil:
			return nil, nil, livingErr
		case len(users) > 0:
			d.say("the embedded server is in use by %s, so this is a guest on it, without a Web UI; start dev again when they have ended", strings.Join(users, ", "))
			return nil, &taken.Server, nil
		}
		if err := d.home().StopBackground(ctx); err != nil {
			return nil, nil, err
		}
		own, err = start()
	}
	if err != nil {
		return nil, nil, err
	}
	return own, &own.Server, nil
}

// users names who depends on the embedded server now.
func (d *dev) users() ([]string, error) {
	records, err := rundir.Living(d.runsDir())
	var names []string
	for _, r := range records {
		switch {
		case !r.Embedded:
		case r.RunID != "":
			names = append(names, "run "+r.RunID)
		default:
			names = append(names, fmt.Sprintf("the host worker with pid %d", r.PID))
		}
	}
	return names, err
}

func (d *dev) announce(up *embedded.Server) {
	fmt.Fprintf(d.out, "Temporal server  %s (namespace %s)\n", up.Address, up.Namespace)
	if up.UI != "" {
		fmt.Fprintf(d.out, "Web UI           %s\n", up.UI)
	}
	fmt.Fprintf(d.out, "Queue            %s\n", d.options.Queue)
	fmt.Fprintf(d.out, "Logs             %s\n", d.options.LogRoot)
	fmt.Fprintln(d.out, "Submit with      clusterrun submit SPEC; Ctrl-C ends this")
}

func (d *dev) stopWorker(w *hostWorker) {
	ctx, cancel := context.WithTimeout(context.Background(), devStop)
	defer cancel()
	w.stop(ctx)
}

func (d *dev) stopServer(f *embedded.Foreground) {
	ctx, cancel := context.WithTimeout(context.Background(), devStop)
	defer cancel()
	if err := f.Stop(ctx); err != nil {
		d.say("the embedded server did not stop: %s", err)
	}
}
