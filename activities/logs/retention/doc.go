// Package retention removes what ended runs left on a host: their logs, their archived
// journals, and the directories that they shipped.
//
// # What may go
//
// [Rule.Choose] decides, from [Facts] alone. A run may be removed when it is over: no state
// directory here holds it, the server does not report it as open, and there is evidence that
// it has ended. The evidence is the server's answer, the [Note] of the run, or the absence of
// its host worker's state directory, which `clusterrun run` removes at its end. The age of a
// file is no evidence.
//
// # On disk
//
// Beside the logs of an execution there is a note and, if the run is to be kept, a second
// file, which [Logs.Keep] makes:
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/…
//	<log dir>/<workflow id>/<short run id>.json
//	<log dir>/<workflow id>/<short run id>.keep
//
// The note is written before the first process starts. It names the host and the state
// directory that the run belongs to: hosts may share a log directory and have state
// directories of the same path, and a prune leaves alone what belongs to others. The note is
// rewritten when the run has ended. Logs without a note are left alone, too.
//
// # How it goes
//
// All removal goes through [os.Root], below a log directory that is held open; no symbolic
// link is followed, and a note counts only if it is a file of the calling user. A log
// directory is pruned by one process at a time ([Logs.Lock]). Only attempts are removed from
// a log directory, and the directories above them if they are then empty. The note goes last:
// if a prune is killed, the next one finds the note and continues.
package retention
