package proc

import "golang.org/x/sys/unix"

// SetUndumpable protects this process from other processes of the same user. They can no longer
// trace it, or access its memory, its environment, or its open files and working directory in
// /proc. Tasks often run as the host worker's user, and must not read the host worker's keys.
//
// The kernel lifts the protection when a process executes a program, so each of our processes calls
// SetUndumpable first. The kernel may also lift it when a thread changes its user
// (fs.suid_dumpable). A superuser with CAP_SYS_PTRACE has access anyway. The process itself can do
// everything it could before, except open the files of /proc/self that now belong to root, such as
// environ and oom_score_adj. Other processes can still read files without permission bits, such as
// /proc/PID/stat, cmdline and cgroup; signals and pidfds also work.
func SetUndumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
