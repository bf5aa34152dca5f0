// Package cli is shared by all commands. It provides [App] with one command line's streams,
// global flags and messages, and handles errors and exit codes, the choice of server, the
// selection of runs by arguments, and shell completion.
//
// All commands select runs with a [RunSelector]: one run with [WithRun], [OnRun] and [Request],
// or several. [CompleteAll] completes each RUN in a usage.
//
// Data goes to stdout, everything else to stderr. Their readers may stop reading, and a run must
// stop without waiting for them. So a command that catches signals writes in goroutines that it
// can leave behind; see printer.go and errwriter.go.
package cli
