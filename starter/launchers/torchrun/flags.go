package torchrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// flag is a flag of torchrun.
type flag struct {
	name  string // without leading dashes, and with dashes for underscores
	short string // without its dash, or empty
	value string // name of the value, or empty if the flag does not take one
	// here describes the flag's effect in clusterrun.
	here string
	// unneeded is why the flag is ignored. It is empty if the flag is used.
	unneeded string
	// typed reports whether no variable sets the flag's default.
	typed bool
	// ours reports whether torchrun lacks the flag. It cannot be abbreviated, so that torchrun's
	// flags keep their abbreviations.
	ours bool
}

// flags is the table of torchrun's flags, in the order of its help.
var flags = []flag{
	{name: "nnodes", value: "N|MIN:MAX", here: "the number of hosts, or the minimum and maximum: agents on these hosts meet at the endpoint and form one run (see the topic)"},
	{name: "nproc-per-node", value: "N|auto|gpu|cpu", here: "the number of processes (default 1)"},
	{name: "rdzv-backend", value: "NAME", here: "how agents on several hosts meet: c10d, or static with --node-rank; not needed on one host"},
	{name: "rdzv-endpoint", value: "HOST[:PORT]", here: "the host and port at which agents on several hosts meet; on one host, MASTER_ADDR and MASTER_PORT of the static backend"},
	{name: "rdzv-id", value: "ID", here: "TORCHELASTIC_RUN_ID, the same for all of a run's agents; the run itself has another ID"},
	{name: "rdzv-conf", value: "KEY=VALUE,...", here: "for agents on several hosts: token_file, join_timeout (c10d) or timeout (static) and last_call_timeout in seconds, is_host; otherwise not needed"},
	{name: "standalone", here: "one host, with a free port; --rdzv-* are ignored"},
	{name: "max-restarts", value: "N", here: "how often all processes are restarted together (default 0); three failures in a row with the same error stop this earlier"},
	{name: "monitor-interval", value: "SECONDS", unneeded: "process exits are detected immediately"},
	{name: "start-method", value: "spawn|fork|forkserver", unneeded: "each process is a separate program"},
	{name: "event-log-handler", value: "NAME", unneeded: "the run's history has all events"},
	{name: "role", value: "NAME", here: "ROLE_NAME, the tasks' type, and part of the --tee prefix (default default)"},
	{name: "module", short: "m", here: "the script is a module: python -u -m"},
	{name: "no-python", here: "the script is a program, started without python -u"},
	{name: "run-path", here: "the script is run by runpy in a separate python"},
	{name: "log-dir", value: "DIR", here: "the root of the logs, which are in RUN/EXECUTION/attempt_N/RANK (default: the state directory)"},
	{name: "redirects", short: "r", value: "MASK", here: "streams that go only to files: 0 to 3, or by rank 0:1,1:2 (default 0)"},
	{name: "tee", short: "t", value: "MASK", here: "streams that go to files and, with a prefix, to the console (default 0)"},
	{name: "log-line-prefix-template", value: "TEXT", here: "the prefix of --tee lines, with ${role_name}, ${local_rank}, ${rank} and ${hostname} (default $TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, or [${role_name}${local_rank}]:)"},
	{name: "local-ranks-filter", value: "RANKS", here: "show only these local ranks"},
	{name: "duplicate-stdout-filters", value: "TEXTS", here: "collect lines of stdout files that contain one of these strings; ,, is a comma"},
	{name: "duplicate-stderr-filters", value: "TEXTS", here: "the same for stderr"},
	{name: "node-rank", value: "N", here: "with the static backend: this host's number; the agents meet at 0"},
	{name: "master-addr", value: "HOST", here: "MASTER_ADDR of the static backend (default: this host); on several hosts, the host at which the agents meet"},
	{name: "master-port", value: "PORT", here: "MASTER_PORT of the static backend (default: a free one, new for each restart); on several hosts, the port at which the agents meet"},
	{name: "local-addr", value: "HOST", here: "MASTER_ADDR of other backends; on several hosts, the address at which other hosts reach this one"},
	{name: "logs-specs", value: "NAME", here: "only default; other values are torchrun plug-ins, and are refused", typed: true},
	{name: "numa-binding", value: "MODE", here: "exclusive: each process is bound to its own CPUs, on one NUMA node if possible; the same for node, socket and core-complex", typed: true},
	{name: "signals-to-handle", value: "NAMES", here: "the signals that stop the run; the processes receive the same signal (default SIGTERM,SIGINT,SIGHUP,SIGQUIT)"},
	{name: "shutdown-timeout", value: "SECONDS", here: "the time between the stop signal and SIGKILL (default $TORCH_ELASTIC_SHUTDOWN_TIMEOUT, or 30)"},
	{name: "print-completion", value: "SHELL", here: "refused; `clusterrun completion SHELL` covers all commands", typed: true},
	{name: "timeout", value: "TIME", here: "the time after which the run is stopped, such as 2h", ours: true, typed: true},
	{name: "silence", value: "TIME|auto", here: "the time without output, progress and processor time after which a process is reported as silent", ours: true, typed: true},
	{name: "on-silence", value: "report|restart|stop", here: "what to do once all processes on a host are silent", ours: true, typed: true},
	{name: "virtual-local-rank", here: "LOCAL_RANK is 0, and each process sees only its own GPUs"},
}

// variable returns the variable that sets a flag's default.
func (f flag) variable() string {
	return "PET_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
}

// Has reports whether torchrun has a flag with that name or letter.
func Has(name string) bool {
	name = dashed(name)
	return slices.ContainsFunc(flags, func(f flag) bool { return name == f.name || name == f.short && name != "" })
}

// Variables returns the environment variables that set defaults of torchrun's flags.
func Variables(environ []string) (names []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		for _, f := range flags {
			if name == f.variable() && !f.typed && value != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

// Reference lists the flags and their effects.
func Reference() string {
	const left, width = 34, 92
	var b strings.Builder
	for _, f := range flags {
		column := "  --" + f.name
		if f.short != "" {
			column = "  -" + f.short + ", --" + f.name
		}
		if f.value != "" {
			column += " " + f.value
		}
		text := cmp.Or(f.here, "not needed: "+f.unneeded)
		if len(column) >= left {
			b.WriteString(column + "\n")
			column = ""
		}
		for _, line := range shorten.Wrap(text, width-left) {
			fmt.Fprintf(&b, "%-*s%s\n", left, column, line)
			column = ""
		}
	}
	return b.String()
}
