package taskenv

import (
	"slices"
	"strings"
)

// Clean returns base without variables that would mislead a process: those that describe its rank
// in another launch (the one that started us), and those of the host worker. The remaining
// variables are unchanged and in the same order.
func Clean(base []string) []string {
	out := make([]string, 0, len(base))
	for _, kv := range base {
		name, _, ok := strings.Cut(kv, "=")
		if ok && name != "" && !isRank(name) && !isOwn(name) {
			out = append(out, kv)
		}
	}
	return out
}

// Ranks returns the names of the variables that [Clean] removes because they describe a rank in
// another launch. It returns none in a clusterrun task, in which the launch is known.
func Ranks(base []string) (names []string) {
	for _, kv := range base {
		switch name, _, ok := strings.Cut(kv, "="); {
		case name == ownPrefix+"TASK":
			return nil
		case ok && isRank(name):
			names = append(names, name)
		}
	}
	return names
}

// isOwn reports whether a variable belongs to the host worker.
func isOwn(name string) bool {
	// Our own variables are set if a run is started from another run's task. All settings of the
	// connection to Temporal are removed, including the API key and client certificate, because an
	// address without its key and TLS settings would only cause confusing failures. A program that
	// needs a connection must get it from the spec.
	return hasAnyPrefix(name, ownPrefix, "TEMPORAL_") && !slices.Contains(ofCommands, name) || slices.Contains(ofService, name)
}

// ofCommands lists those of our variables that a program needs to find its user's runs.
var ofCommands = []string{ownPrefix + "STATE_DIR", ownPrefix + "DEVSERVER"}

// ofService are variables that systemd sets for the host worker's service. A program that finds
// them would report its own readiness as ours.
var ofService = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}

// isRank reports whether a variable makes libraries treat a process as a rank of another launch.
// Other variables of Slurm, MPI and torch, such as the job and tuning, are kept.
func isRank(name string) bool {
	if hasAnyPrefix(name, "PMIX_MCA_") {
		return false
	}
	return slices.Contains(ranks, name) || hasAnyPrefix(name,
		"SLURM_STEP_", "SLURM_SRUN_", "OMPI_COMM_WORLD_", "OMPI_MCA_orte_", "OMPI_MCA_ess_", "PMIX_", "MV2_COMM_WORLD_", "PALS_")
}

func hasAnyPrefix(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

var ranks = []string{
	"TF_CONFIG",
	"RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME",
	"WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE",
	"MASTER_ADDR", "MASTER_PORT",
	"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
	"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
	"JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS",
	"JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_LOCAL_DEVICE_IDS",
	// Set by DeepSpeed and Horovod.
	"LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE",
	"HOROVOD_HOSTNAME", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
	"HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE",
	// Set by Slurm for each process of a step, and for a batch job's script. Lightning and JAX
	// conclude from the number of tasks that srun started them.
	"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEPID", "SLURM_NTASKS", "SLURM_NPROCS",
	"SLURM_TASK_PID", "SLURM_GTIDS", "SLURM_LAUNCH_NODE_IPADDR",
	// Set by Open MPI and MPICH.
	"OMPI_UNIVERSE_SIZE", "OMPI_APP_CTX_NUM_PROCS", "OMPI_NUM_APP_CTX", "OMPI_FIRST_RANKS",
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS",
	"PMI_RANK", "PMI_SIZE", "PMI_ID", "PMI_FD", "PMI_PORT", "PMI_SPAWNED", "PMI_APPNUM", "PMI_UNIVERSE_SIZE",
	"PMI_JOBID", "PMI_KVSNAME", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "PMI_CONTROL_FD", "PMI_CONTROL_PORT",
}
