// Package supervise implements the program clusterrun-supervisor and starts it.
//
// A supervisor is a separate program without Temporal, so it starts as fast as a small program and
// idles in as little memory, which each of its processes inherits as its peak. Both programs share
// a build and a directory.
//
// [Settings] configure a supervisor. It runs as a child of a command ([Settings.Command]), or
// `clusterrun worker` becomes it ([Settings.Exec]). [Main] is the program. It writes
// its log without waiting for the reader ([LogFile]), and returns unused memory to the system.
package supervise
