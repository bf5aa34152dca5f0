// Package detach starts programs that outlive the command that starts them.
//
// A shell, a script or a service that calls a command may have descriptors open that must be closed
// when the command is done, such as the lock of flock(1) or the end of a pipe. [Seal] keeps
// background programs from inheriting such descriptors.
//
// A program that a command starts implicitly also serves later commands of other shells. [Start]
// therefore starts it like a service rather than a child of the first shell: in a new session, at
// nice 0 and the usual I/O priority, on all of the cgroup's processors, with the umask 022, limits
// no lower than process 1's, and the usual score for the OOM killer. Attributes that the caller is
// not permitted to change, such as a nice value above 0 or a hard limit, remain unchanged.
// [Environ] keeps only the variables that belong to the user rather than to one shell.
package detach
