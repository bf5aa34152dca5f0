package taskenv

import (
	"maps"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// voices are the variables by which the process of a task speaks for the task. A command
// that is executed with the task gets none of them: it does not come to the barriers of the task, and
// its errors are its own.
var voices = []string{
	ownPrefix + "SOCKET", ownPrefix + "RESULT_FILE", ownPrefix + "ERROR_FILE", ownPrefix + "STACK_FILE", ownPrefix + "STACK_SIGNAL",
	"TORCHELASTIC_ERROR_FILE", "PMI_FD",
}

// ForCommand returns the environment of a command that is executed with a task in a directory. env
// is the environment of the task, and term the name of the command's terminal, or empty.
func ForCommand(env []string, dir, term string) []string {
	m := fromList(env)
	forgetTraces(m, m)
	for _, name := range voices {
		delete(m, name)
	}
	pythonHook(m, "")
	delete(m, "OLDPWD")
	if dir != "" {
		m["PWD"] = dir
	}
	if term != "" {
		m["TERM"] = term
	}
	return list.Of(slices.Sorted(maps.Keys(m)), func(name string) string { return name + "=" + m[name] })
}
