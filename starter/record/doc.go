// Package record gathers everything that is known of a run, compares two runs, and writes a run
// to a file.
//
// An [Account] has two sources. The server has the status, the result, the spec and the history,
// from which the [Phase]s and the source code are derived. The host of each task has files of its
// processes: the record of its start (see [tasklog.Start]), its last lines, and
// what it used over time. [starter.Files] reads them here, or from hosts that serve
// them.
//
// # The archive
//
// [Pack] writes a compressed tar file that any program can open. It has one directory, named
// after the run:
//
//	README          describes the files
//	account.json    the Account, with the result and the exits
//	spec.yaml       the spec, unless it cannot be read
//	usage.json      what the tasks have used over time
//	history.json    the histories, in Temporal's JSON
//	logs/attempt_<n>/<rank>/...   the output, as package tasklog stores it, if wanted
package record
