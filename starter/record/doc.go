// Package record gathers everything that is known of a run, compares two runs, and writes a run
// to a file.
//
// An [Account] has three sources: the server has the status, the result, the spec and the
// history, from which the [Phase]s are derived; the host of each task has the record of its
// start (see [tasklog.Start]) and its last lines. These two are included if the log directory
// can be read.
//
// # The archive
//
// [Pack] writes a compressed tar file that any program can open. It has one directory, named
// after the run:
//
//	README          describes the files
//	account.json    the Account, with the result and the exits
//	spec.yaml       the spec, unless it cannot be read
//	history.json    the histories, in Temporal's JSON
//	logs/attempt_<n>/<rank>/...   the output, as package tasklog stores it, if wanted
package record
