package hostcheck

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// variable is the environment variable with an execution's ID. Everything that the command starts
// inherits it.
const variable = "CLUSTERRUN_CHECK"

// output executes a shell without stdin, and returns the end of its output and its exit code. When
// the shell exits or ctx is done, output kills all remaining processes, and returns once they are
// gone.
func output(ctx context.Context, instance string, args []string) (said []byte, code int, err error) {
	// A parent-death signal is sent when the thread that forked exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	id, end := instance+"/"+rand.Text(), &tail{}
	c := exec.Cmd{
		Path: "/bin/sh", Args: args, Dir: "/", Env: append(taskenv.Clean(os.Environ()), variable+"="+id), Stdout: end, Stderr: end,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	if err := c.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting %s: %s", c.Path, fault.Reason(err))
	}
	// Reap the shell last, so that its session ID cannot be reused before.
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		var info unix.Siginfo
		for errors.Is(unix.Waitid(unix.P_PID, c.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
	}()
	select {
	case <-exited:
	case <-ctx.Done():
	}
	kill(context.Background(), func(pid int, stat proc.Stat) bool {
		return stat.Session == c.Process.Pid || proc.Variable(pid, variable) == id
	})
	_ = c.Wait() // the state contains the error, and no process that could write is left
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return end.kept, exitcode.OfSignal(int(status.Signal())), nil
	}
	return end.kept, status.ExitStatus(), nil
}

// sweepTakes limits the wait for an earlier side's leftovers to exit.
const sweepTakes = 5 * time.Second

// sweep kills the processes that this supervisor's previous side left behind.
func sweep(instance string) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTakes)
	defer cancel()
	kill(ctx, func(pid int, _ proc.Stat) bool {
		return strings.HasPrefix(proc.Variable(pid, variable), instance+"/")
	})
}

// kill kills processes until none is left or ctx is done.
func kill(ctx context.Context, belongs func(pid int, stat proc.Stat) bool) {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		left := false
		pids, _ := proc.PIDs()
		for _, pid := range pids {
			if stat, err := proc.ReadStat(pid); err == nil && !stat.Dead() && belongs(pid, stat) {
				proc.Signal(pid, stat.Ticks, unix.SIGKILL)
				left = true
			}
		}
		// Poll, because not all of them are children of this process. A process that is waiting in
		// the kernel may exit at any time, or never.
		if !left || retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// tail keeps the last bytes written to it.
type tail struct{ kept []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b[max(0, len(b)-maxSaid):]...)
	t.kept = t.kept[max(0, len(t.kept)-maxSaid):]
	return len(b), nil
}
