package detach

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Seal marks this process's descriptors above 2 as close-on-exec. Go marks those that it opens;
// Seal is for those with which the process was started.
func Seal() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// Start starts a command like a service; see the package's documentation. The command should name
// its working directory and its environment.
func Start(cmd *exec.Cmd) error {
	if err := Seal(); err != nil {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	started := make(chan error)
	go func() {
		// The child inherits these settings from the thread. The thread is never unlocked, so that
		// it exits with this goroutine.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			unix.Umask(0o022)
		}
		reset()
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		return err
	}
	raiseLimits(cmd.Process.Pid)
	return nil
}

// reset gives this thread the default priorities and processors, within its permissions.
func reset() {
	const (
		thread     = 0
		ioOfThread = 1 // IOPRIO_WHO_PROCESS
	)
	_ = unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, thread, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_IOPRIO_SET, ioOfThread, thread, 0)
	// The kernel ignores processors that are not in the cgroup.
	all := unix.NewCPUSet(mostCPUs)
	all.Fill()
	_ = unix.SchedSetaffinityDynamic(thread, all)
}

// mostCPUs limits the processor numbers.
const mostCPUs = 8192
