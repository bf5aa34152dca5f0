// Package supervise implements the program clusterrun-supervisor and starts it.
//
// A supervisor is a separate program that does not contain Temporal, so it starts fast and needs
// little memory when idle. Each of its processes inherits this amount as its initial peak memory.
// Both programs must be from one build and in one directory.
//
// [Settings] configure a supervisor. It runs as a child of a command ([Settings.Command]), or
// `clusterrun worker` becomes it ([Settings.Exec]). [Main] is the program. Main writes its log
// without waiting for the reader ([LogFile]), and returns unused memory to the system.
package supervise
