// Package tasklog knows where the output of processes lies, reads it back, and
// shows it.
//
// # On disk
//
// A process writes straight into files, by descriptor; nothing here is in its
// way. They lie in
//
//	<log dir>/<workflow id>/<short run id>/attempt_<n>/<rank>/
//	    stdout.log stderr.log error.json result.json times start.json
//
// where n counts the processes of a task over its life. So nothing is ever
// overwritten, and [Prune] removes the oldest attempts of a task past a bound.
// What a process left behind is read by [LastLines], [ReadErrorFile] and
// [ReadResult]; each reads a bounded amount, whatever the process has written.
// A [Start] says how the process was started.
// [HandOn] gives an error file to the launcher that started us.
//
// Lines carry no time. The host notes now and then how far they had got ([Times]),
// and from that [Since] knows about where the new ones begin.
//
// A [Collector] keeps filtered_stdout.log and filtered_stderr.log in the directory
// of each attempt: the lines of all its tasks that contain certain texts.
//
// # On the console
//
//	stdout.log ┐                      ┌ Console ─► prefix, stdout or stderr
//	stderr.log ┼─► Follower ──Chunk──►┤
//	…          ┘   one inotify        └ or JSONLines, a Collector, any func(Chunk)
//
// A [Follower] follows all files of a run with one inotify watch per process,
// and finds new attempts by itself. The files are its buffer: it reads no
// faster than its sink takes, and keeps nothing of an unfinished line, which is
// read again when there is more of it. So its memory does not depend on the
// number of tasks, nor on the length of lines. [Follower.Drain] is the promise
// that makes a tail trustworthy: what is on disk when it is called has been
// delivered when it returns.
//
// A [Selection] says which part of a run's output is wanted, here and to those who read it
// from another host.
//
// A [Console] writes lines with the prefix of their task, whole, to stdout and
// stderr. A line is handed on once it is whole, has grown past 64 KiB, has been
// unfinished for a second, or the stream is drained. An unfinished line keeps
// nobody waiting: when a line of another task comes first, the console breaks the
// unfinished one, and starts its rest with the prefix again.
//
// An unfinished line with a carriage return is a progress bar, and handed on
// after a tenth of a second. The console keeps its last state, at most 4 KiB of
// it; what is longer is no bar but text, and passed on. When the line ends, that
// state is the line.
//
// # On a terminal
//
// Below the lines is a live area: up to eight bars, the number of further ones,
// and the status line. It is erased and drawn again with each write of lines, and
// ten times a second at most where only bars have changed. Its rows are not
// wrapped, and never more than the terminal has. Of escape sequences those pass
// that set attributes or links. Each stream has its own, which end with its line
// and go on with its next one, so that between two lines the terminal is always
// as it was found.
//
// Where there is no terminal, all bytes stay as they are, and a bar that has
// changed is shown as a line every ten seconds.
package tasklog
