package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/web"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// devStop limits the shutdown of dev. The worker's processes get a grace period of two seconds,
// and the server one of one and a half.
const devStop = 15 * time.Second

func Dev(a *cli.App) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev [flags]",
		Short: "Run a server, pages in a browser and a host worker here",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDev(cmd.Context(), a, cmd, &o) },
	}
	cmd.Flags().IntVar(&o.port, "port", 7233, "`PORT` of the server; default: 7233, or the next free one")
	cmd.Flags().IntVar(&o.uiPort, "ui-port", 8233, "`PORT` of the pages; default: 8233, or the next free one")
	cmd.Flags().BoolVar(&o.headless, "headless", false, "serve no pages")
	o.background.Register(cmd, "runs can be submitted")
	cmd.Flags().StringVar(&o.host, "host-name", "", "`NAME` by which specs pin tasks to this host (default: the machine's)")
	worker.SlotsFlag(cmd, &o.slots)
	o.keep.Register(cmd)
	o.metered.Register(cmd)
	o.server.RegisterServer(cmd)
	cmd.AddCommand(devStopCommand(a))
	return cmd
}

// devOptions holds the flags of [Dev].
type devOptions struct {
	port, uiPort int
	headless     bool
	host         string
	slots        int
	background   worker.Detached
	keep         worker.KeepLogs
	metered      worker.MeteredAt
	server       worker.MeteredAt
}

// runDev implements [Dev].
func runDev(ctx context.Context, a *cli.App, cmd *cobra.Command, o *devOptions) error {
	if _, external, err := a.External(ctx); err != nil {
		return err
	} else if external {
		return cli.Usagef("dev has its own server, but another one is configured (--address, TEMPORAL_ADDRESS or a profile); remove that setting, or use `clusterrun worker` with it")
	}
	for flag, port := range map[string]int{"port": o.port, "ui-port": o.uiPort} {
		if port < 0 || port > 65535 {
			return cli.Usagef("--%s %d is not a port; use 1 to 65535, or 0 for any free one", flag, port)
		}
	}
	if err := worker.CheckSlots(o.slots); err != nil {
		return err
	}
	policy, err := o.keep.Policy(a.Global.StateDir)
	if err != nil {
		return err
	}
	address, err := o.metered.Address()
	if err != nil {
		return err
	}
	serverAddress, err := o.server.Address()
	if err != nil {
		return err
	}
	if address != "" && address == serverAddress {
		return cli.Usagef("--%s and --%s are both %s: use different ports", o.metered.Flag, o.server.Flag, address)
	}
	if o.background.Parent() {
		return worker.DetachDev(ctx, a, cmd.Flags().Changed("port") || cmd.Flags().Changed("ui-port"))
	}
	o.background.CloseOnExec()
	if err := fault.Programs().Room(); err != nil {
		return err
	}
	d := &dev{App: a, port: o.port, uiPort: o.uiPort, portGiven: cmd.Flags().Changed("port"), uiPortGiven: cmd.Flags().Changed("ui-port"), headless: o.headless, background: o.background, serverMetrics: serverAddress,
		options: workers.Options{StateDir: a.DevDir(), Host: o.host, Queue: spec.TaskQueue, Slots: o.slots, Oversubscribe: !cmd.Flags().Changed("slots"), LogRoot: a.LogsDir(), Retention: policy, Metrics: address, Debug: a.Debug()}}
	return d.run(ctx)
}

// dev is the state of one `clusterrun dev`.
type dev struct {
	*cli.App
	port, uiPort int
	// portGiven and uiPortGiven report whether no other port may be used.
	portGiven, uiPortGiven bool
	moved                  string // lines about ports that were taken
	headless               bool
	background             worker.Detached
	// serverMetrics is the server's metrics address, as HOST:PORT. If it is empty, metrics are
	// not served.
	serverMetrics string
	options       workers.Options
	pages         *web.Server // nil if no pages are served
	client        client.Client
}

func (d *dev) run(ctx context.Context) error {
	signals, stopListening := cli.ListenForSignals(d.App, cli.NotIgnored(cli.Interrupts))
	defer stopListening()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	lock, err := d.lockDev()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := worker.MakeWay(ctx, d.App); err != nil {
		return err
	}
	if err := cmp.Or(workers.CheckMetrics(workers.MetricsFlag, d.options.Metrics), workers.CheckMetrics(worker.ServerMetricsFlag, d.serverMetrics)); err != nil {
		return err
	}
	d.avoidTaken(ctx)
	if !d.headless {
		if d.pages, err = web.Listen("ui-port", d.uiPort); err != nil {
			return err
		}
		defer d.pages.Close()
	}
	own, err := d.startServer(ctx)
	if err != nil {
		return err
	}
	up := own.Instance
	stopServer := d.keepServer(ctx, own)
	defer stopServer()
	s := d.Embedded(&up)
	d.options.Server = s.Options
	if d.client, err = connect.Dial(ctx, s.Options, d.Logger(), cli.DialTimeout); err != nil {
		return err
	}
	defer d.client.Close()
	if err := d.servePages(lock, &up); err != nil {
		return err
	}
	done := cli.EndAbandoned(ctx, d.App, d.client, s)
	if err := os.MkdirAll(d.options.StateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if err := d.options.CheckSockets(); err != nil {
		return err
	}
	w, err := worker.StartHostWorker(d.options, worker.StandardFiles{}, func(err error) { d.Say("the host worker died (%v); starting another", err) })
	if err != nil {
		return err
	}
	defer d.stopWorker(w)
	if err := d.announce(&up); err != nil {
		return err
	}
	done()

	var asked cli.Interruption
	var confirm <-chan time.Time // set while waiting for a second signal
	for {
		select {
		case sig := <-signals:
			n := asked.Add(sig)
			if n == 0 {
				continue
			}
			if n == 1 && d.asksAgain(ctx, sig) {
				asked.Last = time.Now() // signals that arrive in the meantime belong to the same request
				confirm = time.After(worker.ConfirmWithin)
				continue
			}
			d.Printer.Hurry()
			d.Say("stopping")
			return nil
		case <-confirm:
			d.Say("no second signal within %s: continuing", worker.ConfirmWithin)
			asked, confirm = cli.Interruption{}, nil
		case <-w.Exited:
			return w.Err()
		}
	}
}

// avoidTaken replaces ports that no flag names and that another program uses.
func (d *dev) avoidTaken(ctx context.Context) {
	own := 0 // the port of the server that ours replaces
	if s, err := d.Home().Find(ctx); err == nil && s != nil {
		own = portOf(s.Address)
	}
	for _, p := range []struct {
		port  *int
		fixed bool
		of    string
	}{{&d.port, d.portGiven, "the server uses"}, {&d.uiPort, d.uiPortGiven || d.headless, "the pages use"}} {
		wanted := *p.port
		for !p.fixed && *p.port != own && *p.port < wanted+100 {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(*p.port)))
			if !errors.Is(err, syscall.EADDRINUSE) {
				if err == nil {
					l.Close()
				}
				break // other errors are reported where the port is used
			}
			*p.port++
		}
		if *p.port != wanted {
			d.moved += fmt.Sprintf("%-17sis already used by another program: %s port %d\n", fmt.Sprintf("Port %d", wanted), p.of, *p.port)
		}
	}
}

// asksAgain reports whether a second signal must confirm the first, because runs would be stopped.
// If so, it prints that. It does not ask if the terminal is closed or the reader of our output is
// gone.
func (d *dev) asksAgain(ctx context.Context, sig os.Signal) bool {
	if sig == syscall.SIGHUP || sig == syscall.SIGPIPE {
		return false
	}
	names, err := openRuns(ctx, d.client)
	if err != nil {
		d.Say("got %s, but the server does not answer whether this would stop runs (%s); repeat within %s to stop", cli.NameOfSignal(sig), err, worker.ConfirmWithin)
		return true
	}
	if len(names) == 0 {
		return false
	}
	d.Say("got %s: %s processes on this machine would be stopped; repeat within %s to stop", cli.NameOfSignal(sig), stillOpen(names), worker.ConfirmWithin)
	return true
}

// openRuns returns the IDs of the runs that would be stopped together with `clusterrun dev`.
func openRuns(ctx context.Context, c client.Client) (names []string, err error) {
	ctx, done := context.WithTimeout(ctx, worker.ListBound)
	defer done()
	runs, err := starter.List(ctx, c, starter.ListOptions{Open: true, Limit: worker.ListMost})
	for _, r := range runs {
		if r.Queue == spec.TaskQueue {
			names = append(names, r.RunID)
		}
	}
	return names, err
}

// stillOpen returns for example "2 runs are open (iris-x2k4, mnist-8ab3), and their".
func stillOpen(names []string) string {
	n := len(names)
	if n == 1 {
		return "run " + names[0] + " is open, and its"
	}
	return fmt.Sprintf("%d runs are open (%s), and their", n, shorten.List(names, worker.NamesMost))
}

// lockDev ensures that a user runs only one dev.
func (d *dev) lockDev() (*os.File, error) {
	if err := os.MkdirAll(d.Global.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(d.Global.StateDir, cli.DevLock)
	lock, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrLocked) {
		pid := cli.DevPID(d.Global.StateDir)
		return nil, fmt.Errorf("`clusterrun dev` (pid %s) is already running with the state directory %s; stop it with `kill %s`, or choose another directory with --state-dir",
			pid, d.Global.StateDir, pid)
	}
	if err != nil {
		return nil, err
	}
	_ = os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o600) // informative only
	return lock, nil
}

func (d *dev) startServer(ctx context.Context) (*embedded.Foreground, error) {
	var extra []string
	if d.headless {
		extra = append(extra, "--headless")
	}
	if d.serverMetrics != "" {
		extra = append(extra, "--metrics", d.serverMetrics)
	}
	own, err := d.Home().StartForeground(ctx, d.port, temporalPort(d.uiPort), extra...)
	if err != nil {
		return nil, d.Explain(err)
	}
	if d.pages != nil {
		err = d.pages.LinkTemporal(own.UI)
	}
	return own, err
}

// keepServer restarts the server on the same ports whenever it exits unexpectedly, until stop is
// called.
func (d *dev) keepServer(ctx context.Context, own *embedded.Foreground) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d.port = portOf(own.Address)
	done := make(chan struct{})
	go func() {
		defer close(done)
		embedded.Again(ctx, func() (err error) {
			if own == nil {
				if own, err = d.startServer(ctx); err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
			case err := <-own.Exited():
				own = nil
				d.Say("the embedded server exited unexpectedly (%v; its log is %s); restarting it", err, d.Home().Log())
			}
			return nil
		}, func(err error) { d.Say("%s; trying again", err) })
		if own != nil {
			d.stopServer(own)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// portOf returns the port in an address, or 0.
func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}

// announce reports that runs can be submitted.
func (d *dev) announce(up *embedded.Instance) error {
	link, end := "", "Ctrl-C"
	if d.pages != nil {
		link = d.pages.Link()
	}
	if d.background.Detach {
		end = worker.DevEnd
	}
	text := d.moved + worker.DevText(link, fmt.Sprintf("%s (namespace %s)", up.Address, up.Namespace), d.options.LogRoot, end)
	// The write may block if no process reads the output, but signals are still handled.
	go func() { _, _ = io.WriteString(d.Out, text) }()
	return d.background.Tell(text)
}

func (d *dev) stopWorker(w *worker.HostWorker) {
	ctx, cancel := context.WithTimeout(context.Background(), devStop)
	defer cancel()
	w.Stop(ctx)
}

func (d *dev) stopServer(f *embedded.Foreground) {
	ctx, cancel := context.WithTimeout(context.Background(), devStop)
	defer cancel()
	if err := f.Stop(ctx); err != nil {
		d.Say("the embedded server did not stop: %s", err)
	}
}
