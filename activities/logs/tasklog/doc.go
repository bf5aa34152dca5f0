// Package tasklog manages the files with the output of processes, reads them back, and shows them.
//
// # On disk
//
// The supervisor copies what a process writes to files, so nothing in this package can slow the
// process down. The files are in
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/<rank>/
//	    stdout.log stderr.log error.json result.json times start.json usage
//
// where n counts a task's processes over the task's life. So nothing is ever overwritten. [Prune]
// removes a task's oldest attempts if there are too many. [LastLines], [ReadErrorFile] and
// [ReadResult] read the files that a process left behind; each reads a limited part, even if the
// process wrote much more. A [Start] records how the process was started. [HandOn] passes an error
// file on to the launcher that started this program. [Usage] records the process's resource usage
// over time, in at most 16 KB.
//
// Lines do not contain a time. Instead, the host regularly records the sizes of the files
// ([Times]), from which [Since] estimates where the lines after a given time start.
//
// A [Collector] keeps filtered_stdout.log and filtered_stderr.log in each attempt's directory: the
// lines of all its tasks that contain certain strings.
//
// # On the console
//
//	stdout.log ┐                      ┌ Console ─► prefix, stdout or stderr
//	stderr.log ┼─► Follower ──Chunk──►┤
//	…          ┘   polls              └ or JSONLines, a Collector, any func(Chunk)
//
// A [Follower] checks all files of a run every 50 ms, or less often where that takes long, and
// automatically finds new attempts. The files are its buffer, so it reads no faster than its sink
// accepts, and keeps nothing of an unfinished line, which it reads again when the line has grown.
// So its memory does not depend on the number of tasks or the length of lines. It keeps the files
// of living processes open, up to a limit, so that removed files are read to their end. When
// [Follower.Stop] returns, everything that was on disk when it was called has been delivered, so a
// tail is trustworthy.
//
// A [Selection] describes the part of a run's output that is wanted, for readers on any host.
//
// A [Console] writes whole lines, with their task's prefix, to stdout and stderr. A line is written
// once it is complete, has grown past 64 KiB, has been unfinished for a second, or the follower
// stops. An unfinished line does not delay other tasks: when another task's line comes first, the
// console breaks the unfinished one, and starts its rest with the prefix again.
//
// An unfinished line with a carriage return is a progress bar. The console keeps its last state, at
// most 4 KiB of it; longer text is not a bar, and is passed on. When the line is complete, that
// state is the line. Until then, a bar that has changed is shown as a line every ten seconds.
//
// # On a terminal
//
// The status line is below the lines. It is erased and redrawn with each write of lines. Only
// escape sequences that set attributes or links are let through. Each stream has its own
// attributes, which end with its line and resume with its next line, so that between two lines the
// terminal is always in its initial state.
//
// Without a terminal all bytes are kept as they are.
package tasklog
