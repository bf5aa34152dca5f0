package detach

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limits is the number of limits that setrlimit(2) supports.
const limits = 16

// raiseLimits raises a process's limits to process 1's, within its permissions, and its limit of
// open files to the hard limit. It sets the process's score for the OOM killer to 0. It never
// lowers a limit. A pid of 0 means this process.
func raiseLimits(pid int) {
	for resource := range limits {
		var first, own unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &own) != nil {
			continue
		}
		if unix.Prlimit(1, resource, nil, &first) != nil {
			// Without a privilege, process 1's limits are unknown. They are hardly lower than our
			// own hard limits; for some of these the soft limit means something else.
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

// usual returns a limit's value if nothing sets it. It is unlimited except for the stack and core
// files, since their soft limits are not raised.
func usual(resource int, own unix.Rlimit) unix.Rlimit {
	if resource == unix.RLIMIT_STACK || resource == unix.RLIMIT_CORE {
		return own
	}
	return unix.Rlimit{Cur: own.Max, Max: own.Max}
}

// raised returns a limit's new value, given process 1's limit.
func raised(resource int, own, first unix.Rlimit) unix.Rlimit {
	most := max(own.Max, first.Max)
	soft := max(own.Cur, first.Cur)
	if resource == unix.RLIMIT_NOFILE {
		soft = most
	}
	return unix.Rlimit{Cur: min(soft, most), Max: most}
}

// keepFiles keeps the soft limit of open files for the programs that this program starts. Without
// it, Go's runtime would give them the limit that this process was started with.
func keepFiles() {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	}
}
