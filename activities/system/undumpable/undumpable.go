// Package undumpable protects a process from others of its own user: its memory, its
// environment, its open files and working directory in /proc, and ptrace. Processes of tasks
// often have the user of the host worker, and must not read its keys.
//
// The kernel lifts the protection when a process executes a program, so each of our processes
// calls [Set] first of all. It may also lift it when a thread changes its user
// (fs.suid_dumpable). A superuser with CAP_SYS_PTRACE has access anyway. The process itself
// can do all that it could before, except open the files of /proc/self that now belong to
// root, such as environ and oom_score_adj. Others can still read files without permission
// bits, such as /proc/PID/stat, cmdline and cgroup; signals and pidfds work, too.
package undumpable

import "golang.org/x/sys/unix"

// Set protects this process.
func Set() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
