package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/task/pmi"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// pmiFD is the descriptor for the program's requests.
const pmiFD = 3

// runRank runs the program until it exits.
func runRank(ctx context.Context, t *task.Task, w mpiRank, args []string) error {
	if w.alone {
		return fmt.Errorf("rank %d was started again alone, and cannot rejoin its MPI world; restart all ranks, as restart_scope: group does", w.Rank)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for the program: %w", err)
	}
	// Close interrupts a read only if the socket is non-blocking. A process that the program
	// left behind may keep the other end open.
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return fmt.Errorf("make a socket for the program: %w", err)
	}
	here, there := os.NewFile(uintptr(ends[0]), "pmi"), os.NewFile(uintptr(ends[1]), "pmi")
	defer here.Close()
	// The program handles signals. It is in our process group and receives them itself.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	cmd := exec.Command(args[0], args[1:]...)
	if errors.Is(cmd.Err, exec.ErrDot) {
		cmd.Err = nil
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{there}
	cmd.Env = mpiEnviron(os.Environ(), w)
	if err := cmd.Start(); err != nil {
		return cannotExecute(args[0], err)
	}
	_ = there.Close()
	go passOn(signals, cmd.Process)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- servePMI(ctx, t, w, here, cmd.Process) }()
	_ = cmd.Wait()
	cancel()
	_ = here.Close()
	if abort, ok := errors.AsType[*pmi.AbortError](<-served); ok {
		return &cli.ExitError{Code: cmp.Or(abort.Code&0xff, 1)}
	}
	return endAs(cmd.ProcessState)
}

// lateSignals is how long after a program's start earlier signals are passed on to it.
const lateSignals = 100 * time.Millisecond

// passOn sends a program the signals that arrived before it was started, including those that the
// Go runtime has not yet delivered.
func passOn(signals <-chan os.Signal, p *os.Process) {
	over := time.After(lateSignals)
	for {
		select {
		case s := <-signals:
			if s != unix.SIGCHLD && s != unix.SIGURG {
				_ = p.Signal(s)
			}
		case <-over:
			return
		}
	}
}

// endAs makes this process exit, or die of a signal, in the same way as the program.
func endAs(state *os.ProcessState) error {
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		dieOf(status.Signal())
	}
	if code := status.ExitStatus(); code != 0 {
		return &cli.ExitError{Code: code}
	}
	return nil
}

// dieOf kills this process with a signal. It resets the signal's action itself, because Go's
// runtime keeps its own for some signals.
func dieOf(s syscall.Signal) {
	var byDefault [4]uint64 // struct sigaction, with SIG_DFL

	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0) //nolint:gosec // the call has no other form
	_ = unix.Kill(os.Getpid(), s)
	select {}
}

// mpiEnviron returns a rank's environment. It removes another MPI launcher's variables for this
// process's rank.
func mpiEnviron(base []string, w mpiRank) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "PMI_") || strings.HasPrefix(name, "PMIX_") || strings.HasPrefix(name, "MPI_LOCAL")
	})
	for _, v := range []struct {
		name  string
		value int
	}{
		{"PMI_FD", pmiFD}, {"PMI_RANK", w.Rank}, {"PMI_SIZE", w.Size},
		{"MPI_LOCALRANKID", w.localRank}, {"MPI_LOCALNRANKS", w.localSize},
	} {
		env = append(env, v.name+"="+strconv.Itoa(v.value))
	}
	return env
}

func cannotExecute(program string, err error) error {
	code := exitcode.NotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = exitcode.NotFound
	}
	if in, ok := errors.AsType[*exec.Error](err); ok {
		err = in.Err
	}
	return &cli.ExitError{Code: code, Cause: fmt.Errorf("%s: %w", program, err)}
}
