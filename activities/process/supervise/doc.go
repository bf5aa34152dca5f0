// Package supervise is the program clusterrun-supervisor, and how clusterrun starts it.
//
// A supervisor is a program of its own, with nothing of Temporal in it: it starts in the time of a
// small program, and idles in the memory of one, which each of its processes inherits as its
// peak. Both programs are of one build, and in one directory.
//
// [Settings] say what a supervisor does. It is a child of a command ([Settings.Command]), or what
// `clusterrun worker` becomes ([Settings.Exec]). [Main] is the program.
package supervise
