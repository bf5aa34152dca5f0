package stacks

import (
	"path/filepath"
	"strconv"
)

// Signal asks a process that has opted in for its stacks: SIGRTMAX-4, which no C library,
// language runtime or debugger is known to use.
const Signal = 60

// AnswerBase returns the value of CLUSTERRUN_STACK_FILE for a process with that log
// directory. A process answers in the file with that name, a dot and its process ID.
func AnswerBase(logDir string) string { return filepath.Join(logDir, "stacks") }

// answerFile returns the file in which the process with that ID answers.
func answerFile(logDir string, pid int) string {
	return AnswerBase(logDir) + "." + strconv.Itoa(pid)
}

// memoryFile returns how /proc shows the file in memory in which a process answers, if it has
// one: what Python programs have.
func memoryFile(pid int) string {
	return "/memfd:clusterrun-stacks." + strconv.Itoa(pid) + " (deleted)"
}
