// Package runrecord gathers everything known about a run, compares two runs, and writes a run to a
// file.
//
// An [Account] has two sources. The server provides the status, the result, the spec and the
// history, from which the [Phase]s and the source code are derived. Each task's host has the files
// of its processes: the record of the start (see [tasklog.Start]), the last lines, and the metrics
// over time. [files.Files] reads them from this machine, or from hosts that serve them.
//
// # The archive
//
// [Pack] writes a compressed tar file that any program can open. It contains one directory, named
// after the run:
//
//	README          describes the files
//	account.json    the Account, with the result and the exits
//	spec.yaml       the spec, unless it cannot be read
//	metrics.json    what the tasks have reported over time
//	history.json    the histories, in Temporal's JSON
//	logs/attempt_<n>/<rank>/...   the output, as package tasklog stores it, if wanted
package runrecord
