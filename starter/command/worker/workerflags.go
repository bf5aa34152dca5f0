package worker

import (
	"cmp"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// workerFlags holds the flags that describe a host worker.
type workerFlags struct {
	host, queue, logDir      string
	listen, advertise        string
	policyFile, audit        string
	metered                  MeteredAt
	slots, gpus              int
	keep                     KeepLogs
	role                     string
	checks                   []string
	checkEvery, checkTimeout time.Duration
	longestGrace             time.Duration
}

func (f *workerFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.role, "role", string(workers.RoleBoth), "`ROLE` of this worker: host, controller or both")
	cmd.Flags().StringVar(&f.host, "host-name", "", "`NAME` by which specs pin tasks to this host (default: the machine's)")
	SlotsFlag(cmd, &f.slots)
	cmd.Flags().IntVar(&f.gpus, "gpus", 0, "`NUMBER` of GPUs that tasks may use (default: all)")
	cmd.Flags().StringVar(&f.queue, "queue", spec.TaskQueue, "task `QUEUE` to serve")
	cmd.Flags().StringVar(&f.logDir, "log-dir", "", "`DIRECTORY` for the output of runs that do not name one; default: logs, in the state directory")
	cmd.Flags().StringArrayVar(&f.checks, "check", nil, "a check that this host must pass to get tasks, as `NAME`, NAME:LIMIT or NAME=COMMAND; may be repeated; default: disk and clock; none disables all checks")
	cmd.Flags().DurationVar(&f.checkEvery, "check-every", hostcheck.DefaultEvery, "repeat the checks after this `TIME` without tasks")
	cmd.Flags().DurationVar(&f.checkTimeout, "check-timeout", hostcheck.DefaultTimeout, "`TIME` after which a check is killed and counts as failed")
	cmd.Flags().DurationVar(&f.longestGrace, "longest-grace", supervisor.DefaultLongestGrace, "on SIGTERM, limit tasks' grace periods to this `TIME`; allow 10s more in a service manager")
	f.keep.Register(cmd)
	f.metered.Register(cmd)
	cmd.Flags().StringVar(&f.policyFile, "policy", "", "`FILE` that defines what this host runs, for whom and as which user; everything else is denied (see policy)")
	cmd.Flags().StringVar(&f.audit, "audit", "", "`FILE` that receives a line of JSON for each start, refusal and request; if it cannot be written, starts are refused")
	cmd.Flags().StringVar(&f.listen, "listen", "", "`ADDRESS` (HOST:PORT, HOST or :PORT) at which this host serves its runs' output to `clusterrun logs` on other hosts, or off; default: a free port on all addresses, or off with a server on this machine")
	cmd.Flags().StringVar(&f.advertise, "advertise", "", "`HOST[:PORT]` at which other hosts reach this host; default: the host name, if DNS knows it, and otherwise the address from which it reaches the server; for output, always the latter")
}

// SlotsFlag registers --slots with the same default for all host workers.
func SlotsFlag(cmd *cobra.Command, slots *int) {
	cmd.Flags().IntVar(slots, "slots", runtime.GOMAXPROCS(0), "run at most `NUMBER` tasks at a time; 0 for no limit (default: one per processor)")
	cmd.Flags().Lookup("slots").DefValue = "0" // 0 hides the default, because it differs between machines; the usage text describes it
}

func CheckSlots(n int) error {
	if n < 0 {
		return cli.Usagef("--slots %d: use 1 or more, or 0 for no limit", n)
	}
	return nil
}

// options checks the flags, and makes their paths absolute.
func (f *workerFlags) options(a *cli.App, cmd *cobra.Command) (o workers.Options, err error) {
	if err := CheckSlots(f.slots); err != nil {
		return o, err
	}
	role, listen := workers.Role(f.role), f.listen
	switch role {
	case workers.RoleHost, workers.RoleBoth:
	case workers.RoleController:
		for _, name := range []string{"slots", "gpus", "log-dir", "listen", "advertise", "longest-grace", "keep-logs", "max-logs", "check", "check-every", "check-timeout"} {
			if cmd.Flags().Changed(name) {
				return o, cli.Usagef("--%s applies to hosts, but a controller does not execute anything; omit the flag, or use --role both", name)
			}
		}
		listen = listenOff
	default:
		return o, cli.Usagef("--role %q: use host, controller or both", f.role)
	}
	for _, file := range []struct {
		flag string
		path *string
	}{{"--log-dir", &f.logDir}, {"--policy", &f.policyFile}, {"--audit", &f.audit}} {
		if *file.path == "" {
			continue
		}
		// Runs pass the log directory on to other processes.
		if *file.path, err = filepath.Abs(*file.path); err != nil {
			return o, cli.Usagef("%s: %s; use an absolute path", file.flag, err)
		}
		if err := cli.CheckPath(file.flag, *file.path, "use another"); err != nil {
			return o, err
		}
	}
	o = workers.Options{
		StateDir: a.WorkerDir(), Host: f.host, Queue: f.queue, Slots: f.slots, LogRoot: cmp.Or(f.logDir, a.LogsDir()), Debug: a.Debug(),
		Listen: listen, ListenAs: f.advertise, Role: role, Policy: f.policyFile, Audit: f.audit,
	}
	if o.Retention, err = f.keep.Policy(a.Global.StateDir); err != nil {
		return o, err
	}
	if o.Metrics, err = f.metered.Address(); err != nil {
		return o, err
	}
	if err := o.CheckPolicy(); err != nil {
		return o, cli.Usagef("%s", err)
	}
	if cmd.Flags().Changed("gpus") {
		if f.gpus < 0 {
			return o, cli.Usagef("--gpus %d: use 0 or more", f.gpus)
		}
		o.GPUs = &f.gpus
	}
	if role != workers.RoleController {
		if o.Checks, err = hostcheck.ParseAll(f.checks); err != nil {
			return o, cli.Usagef("--check: %v", err)
		}
	}
	for flag, d := range map[string]time.Duration{"--check-every": f.checkEvery, "--check-timeout": f.checkTimeout, "--longest-grace": f.longestGrace} {
		if d < time.Second {
			return o, cli.Usagef("%s %s: use a time of at least 1s", flag, d)
		}
	}
	o.CheckEvery, o.CheckTimeout, o.LongestGrace = f.checkEvery, f.checkTimeout, f.longestGrace
	if f.advertise != "" {
		if o.Advertise, _, err = spec.SplitAddress(f.advertise); err != nil {
			return o, cli.Usagef("--advertise: %s", err)
		}
	}
	return o, nil
}
