// Package remotecommand executes a command with the process of a task, for a client on any
// host.
//
// The command is a child of the side. It has the cgroup, the CPUs, the limits, the user and the
// variables of the task, but it is not of the task: its variables do not lead to the task's
// socket and files, nothing waits for it, and the task's exit does not depend on it. Its own
// cgroup is below the task's, so that the task's limits count for both together.
//
// # Messages
//
// Client and host send messages, each a line of JSON ([message]). A message with a length is
// followed by that many bytes of one stream. The first one of the client is a [Start], and the
// last one of the host an [End]. A connection that ends earlier was cut.
//
// The host tells how much of stdin the command has taken, and the client sends at most
// [window] bytes beyond that. So a command that does not read its stdin does not keep signals and sizes
// of the terminal from arriving. Output has no such window: a client that does not read makes the
// command wait.
//
// # The end
//
// A command has a session of its own, a variable with an ID in its environment and, if the task
// has one, a cgroup. They find what the command has started: all of it ends with the command.
// When the command has ended, when the connection has, and when the process of the task has,
// everything that is left gets SIGHUP and, after a grace, SIGKILL.
//
// If the side is killed, the kernel kills the command with it (parent-death signal), and hangs
// its terminal up. A file in the state directory names each command, so that the next side ends
// what else is left ([Sweep]). If the supervisor dies as well, its sweep finds them, because they
// have the cookie of the task.
package remotecommand
