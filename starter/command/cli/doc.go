// Package cli is what all commands share: [App] with the streams, the global flags and the
// messages of one command line, the errors and exit codes, the server that a command talks
// to, the run that is its argument, and what shells complete.
//
// Data goes to stdout, everything else to stderr. Those who read them may stop reading, and
// what stops a run must not wait for them: a command that catches signals writes in
// goroutines that it can leave behind; see printer.go and errwriter.go.
package cli
