package torchrun

import (
	"slices"
	"strings"
)

// environment adds variables that torchrun passes on to its processes and clusterrun does not.
func (t *translation) environment() error {
	if id := t.text("rdzv-id", ""); id != "" && !t.has("standalone") {
		t.setenv("TORCHELASTIC_RUN_ID", id)
	}
	inherited := map[string]bool{}
	for _, kv := range t.machine.Inherited {
		inherited[kv] = true
	}
	for _, kv := range t.machine.Environ {
		name, _, ok := strings.Cut(kv, "=")
		switch m := t.launch.Meeting; {
		case !ok || name == "" || inherited[kv] || !passed(name):
		case m != nil:
			m.Own = append(m.Own, kv) // other agents have different values
		default:
			t.add("--env", kv)
		}
	}
	if t.processes > 1 && t.machine.getenv("OMP_NUM_THREADS") == "" && !t.has("numa-binding") {
		t.note("OMP_NUM_THREADS is not set; using 1 per process, like torchrun. Set it to tune your program")
	}
	return nil
}

// passed reports whether processes get a variable from torchrun's environment: all except those
// that the run sets for them, and those that configure clusterrun.
func passed(name string) bool {
	for _, prefix := range []string{"CLUSTERRUN_", "TEMPORAL_", "LISTEN_", "WATCHDOG_"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return !slices.Contains(ownVariables, name)
}

var ownVariables = []string{
	"RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME",
	"WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
	"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
	"NOTIFY_SOCKET",
}
