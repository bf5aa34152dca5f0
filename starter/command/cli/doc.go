// Package cli is shared by all commands. It has [App] with the streams, the global flags and
// the messages of one command line, the errors and exit codes, the server that a command talks
// to, the choice of the run that is its argument, and the completion of words in shells.
//
// A command that changes a run takes complete IDs ([WithRun], [Request]) or patterns ([Resolve]).
// Others take the beginning of an ID, too ([OnRun], [Look]). [CompleteAll] completes each RUN in
// a usage.
//
// Data is written to stdout, everything else to stderr. Their readers may stop reading, and a
// run must stop without waiting for them. So a command that catches signals writes in
// goroutines that it can leave behind; see printer.go and errwriter.go.
package cli
