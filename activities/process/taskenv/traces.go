package taskenv

import "path/filepath"

// traceVariables hold the path prefix where torch's Flight Recorder writes the last collectives
// when one times out; torch appends the rank. torch 2.2 and later read the second variable; the
// most recent versions prefer the first if it is set.
var traceVariables = []string{"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}

// traces makes the Flight Recorder write to the process's directory, unless the host worker or the
// spec sets one of the variables. In that case, the other must remain unset, since torch might
// prefer it. Whether anything is recorded is left to torch's default, because recording costs time
// and memory.
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

// forgetTraces removes the trace variables that an outer run set for its own process (described by
// base), so that tasks do not overwrite that process's dump.
func forgetTraces(env, base map[string]string) {
	dir := base[ownPrefix+"LOG_DIR"]
	for _, name := range traceVariables {
		if dir != "" && filepath.Dir(env[name]) == dir {
			delete(env, name)
		}
	}
}
