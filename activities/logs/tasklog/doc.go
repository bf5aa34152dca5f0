// Package tasklog knows where the output of processes is stored, reads it back, and shows it.
//
// # On disk
//
// The supervisor copies what a process writes into files, so nothing here can slow the process
// down. The files are in
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/<rank>/
//	    stdout.log stderr.log error.json result.json times start.json usage
//
// where n counts the processes of a task over its life. So nothing is ever overwritten, and
// [Prune] removes the oldest attempts of a task beyond a bound. [LastLines], [ReadErrorFile]
// and [ReadResult] read the files that a process left behind; each reads a bounded part, even
// if the process has written much more. A [Start] records how the process was started. [HandOn]
// passes an error file on to the launcher that started this program. [Usage] records what the
// process used over time, in at most 16 KB.
//
// Lines carry no time. Instead, the host regularly records the sizes of the files ([Times]),
// from which [Since] estimates where the lines after a given time begin.
//
// A [Collector] keeps filtered_stdout.log and filtered_stderr.log in the directory of each
// attempt: the lines of all its tasks that contain certain texts.
//
// # On the console
//
//	stdout.log ┐                      ┌ Console ─► prefix, stdout or stderr
//	stderr.log ┼─► Follower ──Chunk──►┤
//	…          ┘   polls              └ or JSONLines, a Collector, any func(Chunk)
//
// A [Follower] looks at all files of a run every 50 ms, or less often where that takes long, and
// finds new attempts by itself. The files are its buffer: it reads no faster than its sink accepts, and
// keeps nothing of an unfinished line, which it reads again when there is more of it. So its
// memory depends neither on the number of tasks nor on the length of lines. It keeps the files
// of living processes open, up to a bound: a file that is removed is read to its end.
// [Follower.Stop] makes a tail trustworthy: when it returns, everything that was on disk when it
// was called has been delivered.
//
// A [Selection] describes the part of a run's output that is wanted, here and for readers on other
// hosts.
//
// A [Console] writes whole lines, with the prefix of their task, to stdout and stderr. A line
// is written once it is complete, has grown past 64 KiB, has been unfinished for a second, or
// the follower stops. An unfinished line does not delay other tasks: when a line of
// another task comes first, the console breaks the unfinished one, and starts its rest with
// the prefix again.
//
// An unfinished line with a carriage return is a progress bar. The console keeps its last state,
// at most 4 KiB of it; longer text is not a bar, and is passed on. When the line ends, that state is
// the line. Before, a bar that has changed is shown as a line every ten seconds.
//
// # On a terminal
//
// Below the lines is the status line. It is erased and redrawn with each write of lines. Only those
// escape sequences pass that set attributes or links. Each stream has its own attributes, which end
// with its line and resume with its next line, so that between two lines the terminal is always in
// its initial state.
//
// Without a terminal all bytes are kept as they are.
package tasklog
