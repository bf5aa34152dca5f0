// Package tasklog manages the files that contain the output of processes, reads these files, and
// shows them.
//
// # On disk
//
// The supervisor copies the output of processes to files, so nothing in this package can slow a
// process down. The files are in
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/<rank>/
//	    stdout.log stderr.log error.json result.json times start.json metrics
//
// where n is the number of the process, counted over the task's life. So nothing is ever
// overwritten. [Prune] removes a task's oldest attempts if there are too many. [LastLines],
// [ReadErrorFile] and [ReadResult] read the files that a process left behind; each reads only a
// limited part even if the process wrote much more. A [Start] records how the process was started.
// [HandOn] passes an error file on to the launcher that started this program. [WriteMetrics] keeps the
// numbers that the process reported with its progress.
//
// Lines do not contain a time. Instead, the host regularly records the sizes of the files
// ([Times]), from which [Since] estimates where the lines after a given time start.
//
// [Filter] writes filtered_stdout.log and filtered_stderr.log to each attempt's directory: the lines
// of all its tasks that contain certain strings.
//
// # On the console
//
//	stdout.log ┐                      ┌ Console ─► prefix, stdout or stderr
//	stderr.log ┼─► Follower ──Chunk──►┤
//	…          ┘   polls              └ or JSONLines, any func(Chunk)
//
// A [Follower] checks all files of a run every 50 ms, or less often where that takes long, and
// automatically finds new attempts. The files are its buffer: it reads no faster than its sink
// accepts. It does not keep unfinished lines in memory, but reads such a line again when the line
// has grown. So its memory does not depend on the number of tasks or the length of lines. It keeps
// the files of living processes open, up to a limit, so that removed files are read to their end.
// When [Follower.Stop] returns, everything that was on disk when it was called has been delivered,
// so the end of the output is never missing.
//
// A [Selection] describes the part of a run's output that is wanted, for readers on any host.
//
// A [Console] writes whole lines, with their task's prefix, to stdout and stderr. A line is written
// once it is complete, exceeds 64 KiB, or has been unfinished for a second, or when the follower
// stops. An unfinished line does not delay other tasks. If a line of another task comes before the
// rest, the console breaks the unfinished line, and starts its rest with the prefix again.
//
// A line with carriage returns is a progress bar, of which the last state is shown. The follower
// holds back an unfinished bar for ten seconds, so that one that changes is shown that often.
//
// # On a terminal
//
// The status line is below the lines. It is erased and redrawn with each write of lines. Only
// escape sequences that set attributes are let through, and they are reset at the line's end, so
// that between two lines the terminal is always in its initial state.
//
// If the output is not a terminal, all bytes are kept unchanged.
package tasklog
