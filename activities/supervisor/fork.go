package supervisor

import (
	"runtime"
	"syscall"
	"time"
)

// forker does all forks of a supervisor on one OS thread that lives as long as
// the supervisor runs. A parent-death signal is sent when the *thread* that
// forked dies (golang/go#27505), and the runtime ends threads when it likes.
type forker struct {
	requests chan func()
	quit     chan struct{}
	stopped  chan struct{}
	// window is taken from a fork until the child is registered. Whoever meets a
	// child that it does not know takes it too, and looks again. A channel and
	// not a lock, because a fork lasts until the program was read, and that can
	// be for ever from a file server that is gone.
	window chan struct{}
}

func newForker() *forker {
	f := &forker{
		requests: make(chan func()),
		quit:     make(chan struct{}),
		stopped:  make(chan struct{}),
		window:   make(chan struct{}, 1),
	}
	go func() {
		runtime.LockOSThread()
		defer close(f.stopped)
		defer runtime.UnlockOSThread()
		for {
			select {
			case do := <-f.requests:
				do()
			case <-f.quit:
				return
			}
		}
	}()
	return f
}

// fork starts a program; register is called with its pid before anybody can take
// it for an orphan.
func (f *forker) fork(path string, argv []string, attr *syscall.ProcAttr, register func(pid int)) error {
	return f.forkOn(nil, path, argv, attr, register)
}

// forkOn starts it bound to cpus, where there are any.
func (f *forker) forkOn(cpus []int, path string, argv []string, attr *syscall.ProcAttr, register func(pid int)) error {
	result := make(chan error, 1)
	do := func() {
		f.window <- struct{}{}
		defer func() { <-f.window }()
		pid, err := onCPUs(cpus, func() (int, error) { return syscall.ForkExec(path, argv, attr) })
		if err == nil {
			register(pid)
		}
		result <- err
	}
	select {
	case f.requests <- do:
		return <-result
	case <-f.quit:
		return ErrClosing
	}
}

// between calls do while no fork is in progress; false if one does not end.
func (f *forker) between(do func()) bool {
	timer := time.NewTimer(forkPatience)
	defer timer.Stop()
	select {
	case f.window <- struct{}{}:
	case <-timer.C:
		return false
	}
	defer func() { <-f.window }()
	do()
	return true
}

const forkPatience = time.Second

// close ends the thread, unless it hangs in a fork.
func (f *forker) close() {
	close(f.quit)
	timer := time.NewTimer(forkPatience)
	defer timer.Stop()
	select {
	case <-f.stopped:
	case <-timer.C:
	}
}
