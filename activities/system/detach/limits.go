package detach

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limits is the number of limits that setrlimit(2) supports.
const limits = 16

// raiseLimits raises a process's limits to those of process 1, within its permissions, and its
// limit on open files to the hard limit. It sets the process's score for the OOM killer to 0. It
// never lowers a limit. A pid of 0 means this process.
func raiseLimits(pid int) {
	for resource := range limits {
		var first, own unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &own) != nil {
			continue
		}
		if unix.Prlimit(1, resource, nil, &first) != nil {
			// Without privileges, the limits of process 1 are unknown. They are unlikely to be
			// lower than our own hard limits, but some soft limits have a special meaning.
			first = usual(resource, own)
		}
		wanted := raised(resource, own, first)
		if wanted == own {
			continue
		}
		if unix.Prlimit(pid, resource, &wanted, nil) != nil {
			wanted = unix.Rlimit{Cur: min(wanted.Cur, own.Max), Max: own.Max}
			_ = unix.Prlimit(pid, resource, &wanted, nil)
		}
	}
	if pid == 0 {
		keepFiles()
		pid = os.Getpid()
	}
	// This needs a privilege if an ancestor raised the score, but not if this shell did.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("0"), 0)
}

// usual returns the value that a limit has if it is not set. This is unlimited, except for the
// stack and core files, whose soft limits are not raised.
func usual(resource int, own unix.Rlimit) unix.Rlimit {
	if resource == unix.RLIMIT_STACK || resource == unix.RLIMIT_CORE {
		return own
	}
	return unix.Rlimit{Cur: own.Max, Max: own.Max}
}

// raised returns the new value of a limit, given that of process 1.
func raised(resource int, own, first unix.Rlimit) unix.Rlimit {
	most := max(own.Max, first.Max)
	soft := max(own.Cur, first.Cur)
	if resource == unix.RLIMIT_NOFILE {
		soft = most
	}
	return unix.Rlimit{Cur: min(soft, most), Max: most}
}

// keepFiles keeps the soft limit of open files for the programs that this program starts.
// Otherwise, Go's runtime would give them the limit with which this process was started.
func keepFiles() {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	}
}
