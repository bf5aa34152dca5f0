// Package exitcode defines the exit codes that have a meaning in clusterrun. All other exit codes
// come from programs. It is a leaf shared by workflows, supervisors and commands.
package exitcode

// Exit codes of commands, of runs, and of processes that could not be started.
const (
	OK = 0
	// Failed is the exit code of a failed run that has no better one: its root cause exited with
	// 0 or was killed by clusterrun, or an operator stopped the run with an error.
	Failed = 1
	// Usage means that there is a mistake on the command line or in the spec.
	Usage = 2
	// Preempted is the exit code of a run stopped after a notice: EX_TEMPFAIL in sysexits(3).
	Preempted = 75
	// Timeout is the exit code of timeout(1).
	Timeout = 124
	// Machinery means that clusterrun or a host failed, not the program.
	Machinery = 125
	// NotExecutable and NotFound are a shell's exit codes.
	NotExecutable = 126
	NotFound      = 127
	// Interrupted is the exit code after Ctrl-C, and that of a stopped run.
	Interrupted = 130
)

// OfSignal returns the exit code of a process killed by a signal, as in shells.
func OfSignal(signal int) int { return 128 + signal }
