// Package undumpable closes a process to others of its own user: its memory, its
// environment, its open files and working directory in /proc, and ptrace. Processes of
// tasks often have the user of the host worker, whose keys are no business of theirs.
//
// The kernel opens a process again when it executes a program, so each of our processes
// closes itself first of all, and may open again one whose thread changes its user
// (fs.suid_dumpable). A superuser with CAP_SYS_PTRACE gets in anyway. What the process may
// still do itself: all it did before, but to open files of /proc/self that belong to root
// now, such as environ and oom_score_adj. What has no permission bits in its way, such as
// /proc/PID/stat, cmdline and cgroup, others read as before; signals and pidfds work, too.
package undumpable

import "golang.org/x/sys/unix"

// Set closes this process.
func Set() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
