package mpirun

import (
	"strings"
)

// word is a flag of another launcher, under all of its names.
type word struct {
	// names are written as they are typed. Names with one dash and several letters may also
	// have two dashes.
	names []string
	of    string
	// values names the values of the flag, separated by spaces. It is empty if the flag takes
	// none.
	values string
	// here describes its meaning in clusterrun.
	here string
	// unneeded is why the flag does nothing here. It is empty if it does something.
	unneeded string
	// instead is the advice if the flag is refused.
	instead string
	// flags adds our flags that replace it.
	flags func(t *translation, typed string, values []string) error
}

const (
	mpirun = "mpirun"
	srun   = "srun"
	both   = "mpirun, srun"
	hydra  = "mpiexec" // of the MPICH family
)

// words is the table of flags, in the order of the reference.
var words = []word{
	{names: []string{"-np", "-n"}, of: both, values: "N", here: "`-n N`: N tasks", flags: as("--np")},
	{names: []string{"--ntasks"}, of: srun, values: "N", here: "`-n N`", flags: as("--np")},
	{names: []string{"-N", "--nodes"}, of: srun, values: "COUNT", here: "`--nnodes N`, or `--nnodes MIN:MAX`; mpirun's -N is `--per-host`", flags: (*translation).nodes},
	{names: []string{"--ntasks-per-node"}, of: srun, values: "N", here: "`--per-host N`; without -n, N on each host", flags: number("--per-host")},
	{names: []string{"-npernode", "-ppn", "-perhost"}, of: mpirun, values: "N", here: "`--per-host N`; without -n, N on each host", flags: number("--per-host")},
	{names: []string{"-pernode"}, of: mpirun, here: "`--per-host 1`", flags: fixed("--per-host", "1")},

	{names: []string{"-host"}, of: mpirun, values: "LIST", here: "`-H LIST`: hosts by ssh", flags: as("--host")},
	{names: []string{"-hosts"}, of: hydra, values: "LIST", here: "`-H LIST`; `--hosts` is the number of hosts", flags: as("--host")},
	{names: []string{"-hostfile", "-machinefile", "-f"}, of: mpirun, values: "FILE", here: "`--hostfile FILE`", flags: as("--hostfile")},
	{names: []string{"-w", "--nodelist"}, of: srun, values: "LIST", here: "`-H LIST`, or `--select LIST` with submit and --remote; n[1-4] is expanded", flags: (*translation).nodelist},
	{names: []string{"-rankfile", "-rf"}, of: mpirun, values: "FILE", instead: "--task TYPE=HOST,HOST,... assigns tasks to hosts"},

	{names: []string{"-map-by"}, of: mpirun, values: "HOW", here: "slot: `--strategy pack`, node: `--strategy spread`, ppr:N:node: `--per-host N`; other values, such as core, are left to the kernel", flags: (*translation).mapBy},
	{names: []string{"-bynode"}, of: mpirun, here: "`--strategy spread`", flags: fixed("--strategy", "spread")},
	{names: []string{"-byslot"}, of: mpirun, here: "`--strategy pack`", flags: fixed("--strategy", "pack")},
	{names: []string{"--distribution"}, of: srun, values: "HOW", here: "block: `--strategy pack`, cyclic: `--strategy spread`", flags: (*translation).distribution},
	{names: []string{"-rank-by"}, of: mpirun, values: "HOW", here: "slot; other values are refused: ranks follow the order of the tasks", flags: (*translation).rankBy},
	{names: []string{"-bind-to", "--cpu-bind"}, of: both, values: "WHAT", here: "none: no binding; otherwise `--cpus auto`: each task gets its own CPUs", flags: (*translation).bindTo},
	{names: []string{"-cpu-set", "-cpu-list"}, of: mpirun, values: "LIST", here: "`--cpus LIST`", flags: as("--cpus")},
	{names: []string{"-c", "--cpus-per-task"}, of: both, values: "N", instead: "-n N is the number of tasks; --cpus auto binds each to its own CPUs, and --limit-cpus N limits how much CPU time each may use"},
	{names: []string{"-report-bindings"}, of: mpirun, unneeded: "tasks are bound only as --cpus says"},
	{names: []string{"-use-hwthread-cpus"}, of: mpirun, unneeded: "clusterrun counts CPUs as the kernel does"},
	{names: []string{"-nooversubscribe"}, of: mpirun, unneeded: "more tasks than slots need --oversubscribe"},
	{names: []string{"--overlap"}, of: srun, unneeded: "a run is not a job step"},

	{names: []string{"--export"}, of: srun, values: "WHAT", here: "ALL: `--env-from-shell`, NONE: `--unset-env '*'`; and `-x` for NAME[=VALUE]", flags: (*translation).export},
	{names: []string{"-genvall", "-envall"}, of: hydra, here: "`--env-from-shell`", flags: fixed("--env-from-shell")},
	{names: []string{"-genvlist", "-envlist"}, of: hydra, values: "NAMES", here: "`-x` for each", flags: (*translation).envList},
	{names: []string{"-genv", "-env"}, of: hydra, values: "NAME VALUE", here: "`--env NAME=VALUE`; `--env` itself is clusterrun's", flags: (*translation).envPair},
	{names: []string{"-wdir", "-wd"}, of: mpirun, values: "DIR", here: "`--dir DIR`", flags: as("--dir")},
	{names: []string{"-D", "--chdir"}, of: srun, values: "DIR", here: "`--dir DIR`", flags: as("--dir")},
	{names: []string{"-J", "--job-name"}, of: srun, values: "NAME", here: "`--name NAME`", flags: as("--name")},

	{names: []string{"-timeout"}, of: mpirun, values: "SECONDS", here: "`--timeout`; a plain number is seconds", flags: (*translation).timeout},
	{names: []string{"-t", "--time"}, of: srun, values: "TIME", here: "`--timeout`; in Slurm's form: MINUTES, M:SS, H:MM:SS, DAYS-HOURS", flags: (*translation).time},
	{names: []string{"-K", "--kill-on-bad-exit"}, of: srun, unneeded: "a task that fails stops the others, unless --on-failure continue is given"},
	{names: []string{"-W", "--wait"}, of: srun, values: "SECONDS", instead: "a task that succeeds stops no other; --timeout limits the run"},
	{names: []string{"-enable-recovery"}, of: mpirun, instead: "--max-restarts N restarts a failed task"},

	{names: []string{"-tag-output"}, of: mpirun, unneeded: "each line begins with its task; --log-prefix changes that"},
	{names: []string{"-l", "--label"}, of: both, here: "`--log-prefix '${rank}: '`", flags: fixed("--log-prefix", "${rank}: ")},
	{names: []string{"-prepend-rank"}, of: hydra, here: "`--log-prefix '[${rank}] '`", flags: fixed("--log-prefix", "[${rank}] ")},
	{names: []string{"-timestamp-output"}, of: mpirun, here: "`--timestamps`", flags: fixed("--timestamps")},
	{names: []string{"-output-filename"}, of: mpirun, values: "DIR", here: "`--log-dir DIR`", flags: as("--log-dir")},
	{names: []string{"-merge-stderr-to-stdout"}, of: mpirun, instead: "write 2>&1 at the end of the command line"},
	{names: []string{"-o", "--output"}, of: srun, values: "FILE", instead: "> FILE at the end of the command line collects all output, and --log-dir DIR has a file for each task"},
	{names: []string{"-e", "--error"}, of: srun, values: "FILE", instead: "2> FILE at the end of the command line collects stderr, and --log-dir DIR has a file for each task"},
	{names: []string{"-u", "--unbuffered"}, of: srun, unneeded: "what a program writes is shown at once, and Python does not hold it back; for another that does, put stdbuf -oL in front"},
	{names: []string{"--pty"}, of: srun, here: "`--foreground worker-0`", flags: fixed("--foreground", "worker-0")},
	{names: []string{"-v", "--verbose"}, of: both, unneeded: "use --log-level info"},

	{names: []string{"--mem"}, of: srun, values: "SIZE", instead: `--limit-memory 8GiB is for each task, and --constraint "memory >= 64GiB" chooses hosts`},
	{names: []string{"-G", "--gpus", "--gpus-per-node", "--gres"}, of: srun, values: "WHAT", instead: "--gpus-per-task N gives each task its own GPUs, and --devices auto divides those of a host"},
	{names: []string{"-p", "--partition"}, of: srun, values: "NAME", instead: `--queue QUEUE selects the hosts, and --select and --constraint choose among them`},
	{names: []string{"-A", "--account", "--qos"}, of: srun, values: "NAME", unneeded: "clusterrun has no accounts"},
	{names: []string{"--multi-prog", "-app", "-configfile"}, of: both, values: "FILE", instead: "write a : between the programs (-n 2 a : -n 1 b), or a run spec"},

	{names: []string{"-mca", "-gmca"}, of: mpirun, values: "NAME VALUE", unneeded: "Open MPI's launcher is not used"},
	{names: []string{"--mpi"}, of: srun, values: "TYPE", unneeded: "there is only one way to start programs"},
	{names: []string{"-prefix"}, of: mpirun, values: "DIR", unneeded: "Open MPI's launcher is not used"},
	{names: []string{"-allow-run-as-root"}, of: mpirun, unneeded: "root may run programs"},
	{names: []string{"-preload-binary"}, of: mpirun, instead: "--ship DIRECTORY copies a directory to the hosts"},
	{names: []string{"-display-map", "-display-allocation"}, of: mpirun, unneeded: "`clusterrun validate --plan` shows where tasks would go"},
}

// named returns the flag for a typed name, which may have underscores, or two dashes for one.
func named(typed string) (word, bool) {
	name := strings.ReplaceAll(typed, "_", "-")
	for _, w := range words {
		for _, known := range w.names {
			if name == known {
				return w, true
			}
		}
	}
	if doubled, found := strings.CutPrefix(name, "--"); found && len(doubled) > 1 {
		if ours := doubled == "hosts" || doubled == "env"; !ours {
			return named("-" + doubled)
		}
	}
	return word{}, false
}
