package stacks

import (
	"path/filepath"
	"strconv"
)

// Signal asks a process that has opted in for its stacks. It is SIGRTMAX-4, which no C library,
// language runtime or debugger is known to use.
const Signal = 60

// AnswerBase returns CLUSTERRUN_STACK_FILE's value for a process with that log directory. A process
// answers in the file of that name, plus a dot and its process ID.
func AnswerBase(logDir string) string { return filepath.Join(logDir, "stacks") }

// answerFile returns the file where process pid answers.
func answerFile(logDir string, pid int) string {
	return AnswerBase(logDir) + "." + strconv.Itoa(pid)
}

// memoryFile returns how /proc shows the file in memory where a process may answer, like Python
// programs.
func memoryFile(pid int) string {
	return "/memfd:clusterrun-stacks." + strconv.Itoa(pid) + " (deleted)"
}
