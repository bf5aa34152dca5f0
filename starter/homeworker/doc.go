// Package homeworker implements the host worker of a user's home: one background process, connected
// to the server, which is the Temporal-facing side of every supervisor that this user's run,
// torchrun and submit start on this machine. Commands find it at a Unix socket, or start it.
//
//	command ──► home worker ──► server
//	   │            │ socket that the command passes
//	   └─► supervisor ◄┘ ──► processes
//
// The command is its supervisor's parent, so processes have the command's environment, limits,
// control group and terminal, and are stopped with it. The supervisor of submitted runs is started
// like a service, and outlives the command and the home worker. The home worker talks to
// Temporal, is warm, and does not start processes.
//
// # Ownership
//
// The socket is in a directory of mode 0700, and the home worker serves only its own user. The
// socket's name is a digest of everything that commands must share to use the same home worker: the
// build, the server and its connection settings, the namespaces, the root directory, and the
// process's groups and umask. Any other command starts another home worker. Therefore, commands
// need not be compared any further, and the protocol does not need versions.
//
// # Failures
//
//   - If a run's command dies, its supervisor detects this, stops the processes and notifies the
//     home worker, which cancels the run and waits for it to finish.
//   - If the home worker dies, each supervisor starts its own side, which takes over the tasks. The
//     command then communicates with the server itself, to start the run or wait for its end.
//   - If the home worker is frozen, it does not send the greeting, and the command starts a
//     replacement. If the frozen process is continued, it detects the replacement, and exits after
//     its last run. If it stays stopped by a signal, its supervisors kill it.
//
// The home worker exits when it has not served a command for a while and submitted runs do not need
// it. It first stops their supervisor, and a command that connects in the meantime waits to start
// another home worker. The home worker also exits when the state directory is removed.
package homeworker
