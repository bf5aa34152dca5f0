// Package account gathers all there is to say of a run, compares what there is of two, and
// keeps it in a file.
//
// An [Account] is made of what three know: the server has the status, the result, the spec and
// the history, from which the [Phase]s are; the host of each task has how its process was
// started (see [tasklog.Start]), and its last lines. The latter are there where the log
// directory can be read, and left out elsewhere.
//
// # The archive
//
// [Pack] writes a tar file with gzip, for any program that opens those. All is in a directory
// with the name of the run:
//
//	README          what it is, and what the files are
//	account.json    the Account, with the result and the exits
//	spec.yaml       the spec, unless it cannot be read
//	history.json    the histories, in the JSON of Temporal
//	logs/attempt_<n>/<rank>/...   the output, as package tasklog has it; where wanted
package account
