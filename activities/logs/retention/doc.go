// Package retention removes what runs have left on a host after they ended: their logs, their
// archived journals, and the directories that they shipped.
//
// # What may go
//
// [Rule.Choose] decides what is removed, based only on [Facts]. A run may be removed if no state
// directory on this host holds the run, the server does not report the run as open, and there is
// evidence that the run has finished. The evidence is the server's answer, the run's [Note], or its
// host worker's missing state directory, which `clusterrun run` removes on exit. A file's age does
// not count.
//
// # On disk
//
// There is a note next to an execution's logs:
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/…
//	<log dir>/<workflow id>/<short run id>.json
//
// The note is written before the first process starts. It names the run's host and state directory.
// Hosts may share a log directory and have state directories with the same path, so other hosts'
// files are skipped. The note is rewritten when the run has finished. Logs without a note are also
// skipped.
//
// # How it goes
//
// Everything is removed through [os.Root], within a log directory that is held open. Symbolic links
// are not followed, and a note counts only if the calling user owns it. Only one process at a time
// cleans a log directory ([Logs.Lock]). It removes only attempts, any directories above them that
// are then empty and, finally, the note. If a removal is killed, the next one finds the note and
// continues.
package retention
