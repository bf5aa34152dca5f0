// Package cli is shared by all commands. It has [App] with the streams, the global flags and
// the messages of one command line, the errors and exit codes, the server that a command talks
// to, the runs that its arguments name, and the completion of words in shells.
//
// All commands select runs by a [RunSelector]: one run by [WithRun], [OnRun] and [Request], or
// several. [CompleteAll] completes each RUN in a usage.
//
// Data is written to stdout, everything else to stderr. Their readers may stop reading, and a
// run must stop without waiting for them. So a command that catches signals writes in
// goroutines that it can leave behind; see printer.go and errwriter.go.
package cli
