package supervisor

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/undumpable"
)

// forker does all forks of a supervisor on one OS thread that lives as long as the supervisor
// runs. A parent-death signal is sent when the *thread* that forked dies (golang/go#27505),
// and the runtime may end other threads at any time.
type forker struct {
	requests chan func()
	quit     chan struct{}
	apart    bool // the thread has a mask of its own
	score    oomScore
	stopped  chan struct{}
	// window is held from a fork until the child is registered. Code that finds an unknown
	// child takes it, too, and looks again. It is a channel and not a lock because a fork
	// lasts until the program is loaded, which can take forever if its file server is gone.
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
		// The thread needs a file mode creation mask of its own. If that is not allowed,
		// processes of other users have the supervisor's mask.
		f.apart = unix.Unshare(unix.CLONE_FS) == nil
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
	return f.forkIn(forking{}, path, argv, attr, register)
}

// forking says how a child is forked.
type forking struct {
	cpus  []int // the CPUs that it is bound to; empty for all
	login bool  // it has the mask of a login
	// limits are those of setrlimit(2).
	limits []Rlimit
	// protected reports whether it keeps the supervisor's OOM score.
	protected bool
}

// loginMask is the file mode creation mask of a login.
const loginMask = 0o022

func (f *forker) forkIn(how forking, path string, argv []string, attr *syscall.ProcAttr, register func(pid int)) error {
	result := make(chan error, 1)
	do := func() {
		f.window <- struct{}{}
		defer func() { <-f.window }()
		if how.login {
			if f.apart {
				defer unix.Umask(unix.Umask(loginMask))
			}
			// The child changes its user while it has our memory, which may make us dumpable
			// (fs.suid_dumpable).
			defer func() { _ = undumpable.Set() }()
		}
		if !how.protected {
			defer f.score.lower()()
		}
		pid, err := onCPUs(how.cpus, func() (int, error) { return forkWithin(how.limits, path, argv, attr) })
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
