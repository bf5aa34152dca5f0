package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// devStop bounds the end of dev: the worker's processes have two seconds of
// grace, and the server one and a half.
const devStop = 15 * time.Second

func Dev(a *app) *cobra.Command {
	var (
		port, uiPort int
		headless     bool
		host         string
		slots        int
		background   detached
		keep         keepLogs
		metered      meteredAt
		server       meteredAt
	)
	cmd := &cobra.Command{
		Use:   "dev [flags]",
		Short: "Run a Temporal server, its Web UI and a host worker, in the foreground",
		Long: `Serves the embedded Temporal server with its Web UI, and submitted runs, in the foreground
until Ctrl-C. It uses the same database as run, so the Web UI shows earlier runs, too. It
takes over from an embedded server that already runs, and clients follow. If the server
ends by itself, it is restarted.

The processes of submitted runs end with this command. If there are any, the first SIGTERM
or Ctrl-C only names the runs. A second one within 5s stops everything: processes get
SIGTERM, and SIGKILL 2s later. Without runs the first is enough, and when the terminal
closes (SIGHUP) everything ends at once. Runs of clusterrun run are separate and continue.

At a time as many tasks run as there are processors, or as --slots says; other runs wait.
Without --slots a run with more tasks starts once nothing else runs, and has the host alone.

With --detach all this happens in the background, without a terminal: the command returns
when runs can be submitted, and prints how to end it. Its messages go to dev.log in the
state directory.

Logs are removed 90 days after their run has ended, when the server also forgets the run.
For logs, --keep-logs changes that, and --max-logs limits their size. ` + "`clusterrun du`" + ` shows
how much there is. run also keeps logs for 90 days.

Exit codes:
  0    stopped as requested; with --detach: it runs, or already did
  2    mistake in the command line
  125  a port is taken, dev already runs, or something failed`,
		Example: "  clusterrun dev\n  clusterrun submit iris.yaml   # in another terminal\n\n  clusterrun dev --detach\n  clusterrun submit iris.yaml   # in the same one",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, external, err := a.external(cmd.Context()); err != nil {
				return err
			} else if external {
				return usagef("dev has its own server, but another one is named (--address, TEMPORAL_ADDRESS or a profile); leave that out, or use `clusterrun worker` with it")
			}
			for flag, port := range map[string]int{"port": port, "ui-port": uiPort} {
				if port < 0 || port > 65535 {
					return usagef("--%s %d is not a port; give 1 to 65535, or 0 for any free one", flag, port)
				}
			}
			if err := checkSlots(slots); err != nil {
				return err
			}
			policy, err := keep.policy(a.global.stateDir)
			if err != nil {
				return err
			}
			address, err := metered.address()
			if err != nil {
				return err
			}
			serverAddress, err := server.address()
			if err != nil {
				return err
			}
			if address != "" && address == serverAddress {
				return usagef("--%s and --%s are both %s: give them different ports", metered.flag, server.flag, address)
			}
			if background.parent() {
				return detachDev(cmd.Context(), a, cmd.Flags().Changed("port") || cmd.Flags().Changed("ui-port"))
			}
			background.closeOnExec()
			d := &dev{app: a, port: port, uiPort: uiPort, headless: headless, background: background, serverMetrics: serverAddress,
				options: workers.Options{StateDir: a.devDir(), KeyDir: a.global.stateDir, Host: host, Queue: spec.TaskQueue, Slots: slots, Oversubscribe: !cmd.Flags().Changed("slots"), LogRoot: a.logsDir(), Retention: policy, Metrics: address, Debug: a.debug()}}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&port, "port", 7233, "`PORT` of the server")
	cmd.Flags().IntVar(&uiPort, "ui-port", 8233, "`PORT` of the Web UI")
	cmd.Flags().BoolVar(&headless, "headless", false, "serve no Web UI")
	background.register(cmd, "runs can be submitted")
	cmd.Flags().StringVar(&host, "host-name", "", "`NAME` by which specs pin tasks to this host (default: the machine's)")
	slotsFlag(cmd, &slots)
	keep.register(cmd)
	metered.register(cmd)
	server.registerServer(cmd)
	return cmd
}

// dev is one `clusterrun dev`.
type dev struct {
	*app
	port, uiPort int
	headless     bool
	background   detached
	// serverMetrics is where the server's metrics are served, as HOST:PORT; empty: they are not.
	serverMetrics string
	options       workers.Options
	decodes       *codecServer // for the Web UI; nil: nothing is encoded
	client        client.Client
}

func (d *dev) run(ctx context.Context) error {
	signals, stopListening := listen(d.app, meant(interrupts))
	defer stopListening()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	lock, err := d.alone()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := takeItsPlace(ctx, d.app); err != nil {
		return err
	}
	if err := cmp.Or(workers.CheckMetrics(workers.MetricsFlag, d.options.Metrics), workers.CheckMetrics(serverMetricsFlag, d.serverMetrics)); err != nil {
		return err
	}
	if d.decodes, err = serveUICodec(d.app); err != nil {
		return err
	}
	defer d.decodes.close()
	own, err := d.startServer(ctx)
	if err != nil {
		return err
	}
	up := own.Server
	stopServer := d.keepServer(ctx, own)
	defer stopServer()
	s := d.embedded(&up)
	d.options.Server = s.Options
	if d.client, err = connect.Dial(ctx, s.Options, d.logger(), dialTimeout); err != nil {
		return err
	}
	defer d.client.Close()
	done := endAbandoned(ctx, d.app, d.client, s)
	if err := os.MkdirAll(d.options.StateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	w, err := startHostWorker(d.options, standardFiles{})
	if err != nil {
		return err
	}
	defer d.stopWorker(w)
	if err := d.announce(&up); err != nil {
		return err
	}
	done()

	var asked interruption
	var confirm <-chan time.Time // set while a second signal is waited for
	for {
		select {
		case sig := <-signals:
			n := asked.add(sig)
			if n == 0 {
				continue
			}
			if n == 1 && d.asksAgain(ctx, sig) {
				asked.last = time.Now() // what came while we asked is the same one
				confirm = time.After(confirmWithin)
				continue
			}
			d.voice.hurry()
			d.say("stopping")
			return nil
		case <-confirm:
			d.say("no second signal within %s: going on", confirmWithin)
			asked, confirm = interruption{}, nil
		case err := <-w.exited:
			w.exited <- err // stopWorker waits for it
			return fmt.Errorf("the host worker ended by itself (%v):\n%s", err, w.lastWords())
		}
	}
}

const (
	// confirmWithin is how long a person has to say a second time that all runs are
	// to end.
	confirmWithin = 5 * time.Second
	// listBound is how long the server has to name the runs.
	listBound = 2 * time.Second
	// listMost bounds the runs that are counted, and namesMost those that are named.
	listMost  = 1000
	namesMost = 10
)

// asksAgain reports whether runs would end with us, having said so. A closed
// terminal, or a reader that is gone, cannot be asked.
func (d *dev) asksAgain(ctx context.Context, sig os.Signal) bool {
	if sig == syscall.SIGHUP || sig == syscall.SIGPIPE {
		return false
	}
	ctx, done := context.WithTimeout(ctx, listBound)
	defer done()
	runs, err := starter.List(ctx, d.client, starter.ListOptions{Open: true, Limit: listMost})
	if err != nil {
		d.say("got %s, but the server does not say whether runs would end with this (%s); again within %s to stop", nameOfSignal(sig), err, confirmWithin)
		return true
	}
	var names []string
	for _, r := range runs {
		if r.Queue == d.options.Queue {
			names = append(names, r.RunID)
		}
	}
	if len(names) == 0 {
		return false
	}
	d.say("got %s: %s processes here end with this; again within %s to stop", nameOfSignal(sig), stillOpen(names), confirmWithin)
	return true
}

// stillOpen says "2 runs are open (iris-x2k4, mnist-8ab3), and their".
func stillOpen(names []string) string {
	n := len(names)
	if n == 1 {
		return "run " + names[0] + " is open, and its"
	}
	return fmt.Sprintf("%d runs are open (%s), and their", n, shorten.List(names, namesMost))
}

// alone makes sure that this user has one dev only.
func (d *dev) alone() (*os.File, error) {
	if err := os.MkdirAll(d.global.stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(d.global.stateDir, devLock)
	lock, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrLocked) {
		pid := devPID(d.global.stateDir)
		return nil, fmt.Errorf("`clusterrun dev` (pid %s) runs already with the state directory %s; stop that one with `kill %s`, or choose another with --state-dir",
			pid, d.global.stateDir, pid)
	}
	if err != nil {
		return nil, err
	}
	_ = os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o600) // for people
	return lock, nil
}

// devLock is the name of the file that a dev holds, with its pid.
const devLock = "dev.lock"

// devPID returns the pid of the dev that runs, for people.
func devPID(stateDir string) string {
	pid, _ := os.ReadFile(filepath.Join(stateDir, devLock))
	return cmp.Or(string(bytes.TrimSpace(pid)), "unknown")
}

func (d *dev) startServer(ctx context.Context) (*embedded.Foreground, error) {
	var extra []string
	if d.headless {
		extra = append(extra, "--headless")
	}
	if d.serverMetrics != "" {
		extra = append(extra, "--metrics", d.serverMetrics)
	}
	home := d.home()
	home.Env = d.decodes.environment()
	own, err := home.StartForeground(ctx, d.port, d.uiPort, extra...)
	if err != nil {
		return nil, d.explain(err)
	}
	return own, nil
}

// keepServer starts the server again, on the same ports, whenever it has ended by
// itself, until stop is called.
func (d *dev) keepServer(ctx context.Context, own *embedded.Foreground) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d.port, d.uiPort = portOf(own.Address), portOfURL(own.UI)
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
				d.say("the embedded server ended by itself (%v; its log is %s); restarting it", err, d.home().Log())
			}
			return nil
		}, func(err error) { d.say("%s; trying again", err) })
		if own != nil {
			d.stopServer(own)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// portOf returns the port of an address, or 0.
func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}

// portOfURL returns the port of a URL, or 0.
func portOfURL(text string) int {
	u, err := url.Parse(text)
	if err != nil {
		return 0
	}
	return portOf(u.Host)
}

// announce tells that runs can be submitted.
func (d *dev) announce(up *embedded.Server) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Temporal server  %s (namespace %s)\n", up.Address, up.Namespace)
	if up.UI != "" {
		fmt.Fprintf(&b, "Web UI           %s\n", up.UI)
	}
	fmt.Fprintf(&b, "Queue            %s\n", d.options.Queue)
	fmt.Fprintf(&b, "Logs             %s\n", d.options.LogRoot)
	if d.background.detach {
		fmt.Fprintf(&b, "Submit with      clusterrun submit SPEC\nEnd with         kill %d (while runs are open: twice within %s)\n", os.Getpid(), confirmWithin)
	} else {
		fmt.Fprintf(&b, "Submit with      clusterrun submit SPEC\nEnd with         Ctrl-C (while runs are open: twice within %s)\n", confirmWithin)
	}
	// Nobody may be there to read it, and signals count all the same.
	go func() { _, _ = io.WriteString(d.out, b.String()) }()
	return d.background.tell(b.String())
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
