// Package detach starts programs that outlive the command that starts them.
//
// A shell, a script or a service that calls a command can have descriptors open that it wants
// closed when the command is done: the lock of flock(1), the end of a pipe. [Seal] keeps such
// descriptors out of background programs.
//
// A program that a command starts implicitly also serves later commands of other shells. [Start]
// therefore starts it like a service rather than a child of the first shell: in a new session, at
// nice 0 and the usual I/O priority, on all of the cgroup's processors, with the umask 022, limits
// no lower than process 1's, and the usual score for the OOM killer. Attributes that the caller is
// not privileged to change, such as a nice value above 0 or a hard limit, stay unchanged. [Environ]
// keeps only the variables that belong to the user rather than to one shell.
package detach
