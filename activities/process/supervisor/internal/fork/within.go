package fork

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// Rlimit is a soft and hard limit for setrlimit(2).
type Rlimit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// forkWithin forks a program with limits from its first instruction on, where it is stopped, as by
// a debugger, until they are set. The thread must be locked. With limits, a program that changes
// its own user, such as sudo, fails unless the supervisor is root.
func forkWithin(limits []Rlimit, path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	if len(limits) == 0 {
		return syscall.ForkExec(path, argv, attr)
	}
	traced, sys := *attr, *attr.Sys
	sys.Ptrace = true
	traced.Sys = &sys
	pid, err := syscall.ForkExec(path, argv, &traced)
	if err != nil {
		return 0, err
	}
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	for _, l := range limits {
		if err := unix.Prlimit(pid, l.Resource, &unix.Rlimit{Cur: l.Value, Max: l.Value}, nil); err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			_ = unix.PtraceDetach(pid)
			for _, err := syscall.Wait4(pid, nil, 0, nil); err == syscall.EINTR; _, err = syscall.Wait4(pid, nil, 0, nil) {
			}
			return 0, fault.NotStarted(fmt.Sprintf("setting its limits: %s", fault.Reason(err)))
		}
	}
	return pid, unix.PtraceDetach(pid)
}
