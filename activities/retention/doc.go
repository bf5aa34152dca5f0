// Package retention removes what runs that have ended left on a host: their logs, their
// archived journals, and the directories that they shipped.
//
// # What may go
//
// [Rule.Choose] decides, from [Facts] and nothing else. A run may go when it is over: no
// state directory here holds it, the server does not say that it is open, and somebody says
// that it has ended: the server, its [Note], or that the state directory of its host worker
// is gone, with which `clusterrun run` ends. How old a file is says nothing of that.
//
// # On disk
//
// Beside the logs of an execution there is a note, and where the run is to be kept a second
// file, which [Logs.Keep] makes:
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/…
//	<log dir>/<workflow id>/<short run id>.json
//	<log dir>/<workflow id>/<short run id>.keep
//
// The note is written before the first process starts, and says which state directory of
// which host the run belongs to: hosts may share a log directory and have state directories
// of the same path. So whoever prunes leaves alone what belongs to others. It is written
// anew when the run has ended. Logs without a note are left alone, too.
//
// # How it goes
//
// Everything is done by way of [os.Root], below a log directory that is held open; no
// symbolic link is followed, and a note counts only if it is a file of the user who asks.
// One at a time prunes a log directory ([Logs.Lock]). Of a log directory only attempts are
// removed, and the directories above them if nothing else is there. The note goes last:
// whoever comes after a prune that was killed finds it and goes on.
package retention
