// Package fork starts a supervisor's programs on one thread, bound to CPUs and within limits.
package fork

import (
	"errors"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// Forker forks for a supervisor on one OS thread that lives as long as the supervisor. A
// parent-death signal is sent when the *thread* that forked exits (golang/go#27505), and the
// runtime may terminate other threads at any time.
type Forker struct {
	requests chan func()
	quit     chan struct{}
	apart    bool // the thread has its own file mode creation mask
	score    oomScore
	stopped  chan struct{}
	// window is held from a fork until the child is registered. Code that finds an unknown child
	// acquires window and checks again. It is a channel rather than a lock, because a fork waits
	// until the program is loaded, which may never happen if its file server is gone.
	window chan struct{}
}

// New starts the forking thread.
func New() *Forker {
	f := &Forker{
		requests: make(chan func()),
		quit:     make(chan struct{}),
		stopped:  make(chan struct{}),
		window:   make(chan struct{}, 1),
	}
	go func() {
		runtime.LockOSThread()
		// The thread needs its own file mode creation mask. If that is not allowed, other users'
		// processes get the supervisor's mask.
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

// Start starts a program. register is called with its pid before the reaper can mistake it for an
// orphan.
func (f *Forker) Start(path string, argv []string, attr *syscall.ProcAttr, register func(pid int)) error {
	return f.StartAs(How{}, path, argv, attr, register)
}

// How configures a fork.
type How struct {
	CPUs  []int // the CPUs to which it is bound, or empty for all
	Login bool  // use a login's mask
	// Limits are set with setrlimit(2).
	Limits []Rlimit
	// Protected reports whether the child keeps the supervisor's OOM score.
	Protected bool
}

// loginMask is a login's file mode creation mask.
const loginMask = 0o022

// StartAs starts a program as described by how.
func (f *Forker) StartAs(how How, path string, argv []string, attr *syscall.ProcAttr, register func(pid int)) error {
	result := make(chan error, 1)
	do := func() {
		f.window <- struct{}{}
		defer func() { <-f.window }()
		if how.Login {
			if f.apart {
				defer unix.Umask(unix.Umask(loginMask))
			}
			// The child changes its user while it shares our memory, which may make this process
			// dumpable (fs.suid_dumpable).
			defer func() { _ = proc.SetUndumpable() }()
		}
		if !how.Protected {
			defer f.score.lower()()
		}
		pid, err := onCPUs(how.CPUs, func() (int, error) { return forkWithin(how.Limits, path, argv, attr) })
		if err == nil {
			register(pid)
		}
		result <- err
	}
	select {
	case f.requests <- do:
		return <-result
	case <-f.quit:
		return ErrClosed
	}
}

// Between calls do at a time when no fork is in progress. It returns false if a fork hangs.
func (f *Forker) Between(do func()) bool {
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

// Close ends the thread, unless it hangs in a fork.
func (f *Forker) Close() {
	close(f.quit)
	timer := time.NewTimer(forkPatience)
	defer timer.Stop()
	select {
	case <-f.stopped:
	case <-timer.C:
	}
}

// ErrClosed is returned when the forker is closed.
var ErrClosed = errors.New("closing")
