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
	// window is held from a fork until the child is registered. Code that meets an
	// unknown child takes it, too, and looks again. It is a channel and not a lock
	// because a fork lasts until the program was read, which can take for ever if its
	// file server is gone.
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

// fork starts a program. register is called with its pid before the reaper can take it for
// an orphan.
func (f *forker) fork(path string, argv []string, attr *syscall.ProcAttr, register func(pid int)) error {
	return f.forkOn(nil, path, argv, attr, register)
}

// forkOn is fork with the child bound to cpus, if there are any.
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

// between calls do while no fork is in progress. It returns false if a fork does not end.
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
