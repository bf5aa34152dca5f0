// Package homeworker is the host worker of a user's home: one process in the background, connected
// to the server, which is the Temporal-facing side of every supervisor that a command of this user
// starts here. Commands find it at a Unix socket, or start it there.
//
//	command ──► home worker ──► server
//	   │            │ socket that the command passes
//	   └─► supervisor ◄┘ ──► processes
//
// The command is the parent of its supervisor, so that processes have the command's environment,
// limits, control group and terminal, and end with it. The home worker knows Temporal, is warm, and
// starts no process.
//
// # Whose it is
//
// Its socket is in a directory of mode 0700, and it talks only to its own user. The name of the
// socket is a digest of everything that two commands must share to use one home worker: the build,
// the server with what a connection to it needs, the namespaces, the root directory, the groups and
// the umask of the process. Others start one of their own, so commands compare nothing
// afterwards, and the protocol has no version.
//
// # Who dies
//
//   - The command: its supervisor sees that, stops the processes and tells the home worker, which
//     cancels the run and waits for its end.
//   - The home worker: each supervisor starts a side of its own, which takes over the tasks. The
//     command asks the server itself for the end, or to start the run.
//   - It is frozen: the greeting does not come, and a command starts another in its place. If it is
//     continued, it sees that it has been replaced, and leaves with its last run.
//
// It leaves when no command has used it for a while, and when the state directory is gone.
package homeworker
