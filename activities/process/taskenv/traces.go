package taskenv

import "path/filepath"

// traceVariables have the prefix of the file to which torch's Flight Recorder writes the last
// collectives when one of them has timed out; torch appends the rank. Its versions from 2.2 read
// the second, and newer ones prefer the first.
var traceVariables = []string{"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}

// traces makes the Flight Recorder write to the directory of the process, unless the host worker
// or the spec says where. If only one of the variables is theirs, the other must not be set: torch
// would prefer it. Whether anything is recorded stays torch's default, because recording costs
// time and memory.
func traces(env map[string]string, p Process) {
	if p.TraceFile == "" {
		return
	}
	for _, name := range traceVariables {
		_, here := env[name]
		_, inSpec := p.Env[name]
		if here || inSpec {
			return
		}
	}
	for _, name := range traceVariables {
		env[name] = p.TraceFile
	}
}

// forgetTraces removes the variables that a run around this one set for its own process, which
// base describes: the dump of that process would be overwritten.
func forgetTraces(env, base map[string]string) {
	dir := base[ownPrefix+"LOG_DIR"]
	for _, name := range traceVariables {
		if dir != "" && filepath.Dir(env[name]) == dir {
			delete(env, name)
		}
	}
}
