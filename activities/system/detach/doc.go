// Package detach starts programs that outlive the command that starts them.
//
// A shell, a script or a service that calls a command can have descriptors open that it wants
// closed when the command is done: the lock of flock(1), the end of a pipe. No such descriptor
// is left to a program in the background ([Seal]).
//
// A program that a command starts without being asked to serves later commands, of other
// shells, as well. It therefore begins like a service and not like a child of the shell that
// happened to be the first ([Start]): in a session of its own, at nice 0 and the usual
// priority of I/O, on all processors that its cgroup has, with the umask 022, limits no lower
// than those of process 1, and the usual score for the OOM killer. What needs a privilege that
// the caller does not have stays as it is, such as a nice value above 0 or a hard limit. Of
// the environment, [Environ] keeps what is true for the user and not for one shell.
package detach
