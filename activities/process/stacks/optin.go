package stacks

import (
	"path/filepath"
	"strconv"
)

// Signal is the signal that asks a process for its stacks, if the process has opted in. It is
// SIGRTMAX-4, which no C library, language runtime or debugger is known to use.
const Signal = 60

// AnswerBase returns the value of CLUSTERRUN_STACK_FILE for a process with the given log directory.
// A process answers in the file with this name followed by a dot and its process ID.
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
