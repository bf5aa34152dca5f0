// Package exitcode has the exit codes to which clusterrun gives a meaning. Other exit codes
// come from programs. It is a leaf that workflows, supervisors and commands share.
package exitcode

// Exit codes of commands, of runs, and of processes that could not be started.
const (
	OK = 0
	// Failed is the exit code of a run whose root cause ended with 0 or with a signal of
	// clusterrun's, or that an operator stopped with an error.
	Failed = 1
	// Usage is a mistake in the command line or the spec.
	Usage = 2
	// Preempted is the exit code of a run that was stopped after a notice: EX_TEMPFAIL of
	// sysexits(3).
	Preempted = 75
	// Timeout is as timeout(1) has it.
	Timeout = 124
	// Machinery means that clusterrun or a host failed rather than the program.
	Machinery = 125
	// NotExecutable and NotFound are as in shells.
	NotExecutable = 126
	NotFound      = 127
	// Interrupted is the exit code after Ctrl-C, and of a run that was stopped.
	Interrupted = 130
)

// OfSignal returns the exit code for an end by a signal, as in shells.
func OfSignal(signal int) int { return 128 + signal }
