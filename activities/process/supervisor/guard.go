package supervisor

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/early"
)

// guard is this program again, under another name and in a session of its own, which does nothing
// until the supervisor dies. Then it sweeps, as the side does, which may have been killed together
// with the supervisor: by a `pkill -9` of their name, or by the kernel when memory runs out. It
// notices that by its parent-death signal, which needs no descriptor.
//
// There is none until the first process runs. Guarded by supervisor.mu except for starting.
type guard struct {
	pid    int // until it is reaped; 0: there is none
	needed bool
	over   bool // the supervisor is about to end
	begun  time.Time
	pause  time.Duration
	again  *time.Timer
	// starting is held while the guard is forked. It is acquired before mu.
	starting sync.Mutex
}

// In a guard nothing but this is done, in any program that has a supervisor.
func init() {
	if supervisor, dir, ok := early.Bereft(); ok {
		if _, err := sweepAfterLoss(context.Background(), dir, supervisor); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// needGuard starts the guard, in parallel, unless that was done. s.mu must be held.
func (s *supervisor) needGuard() {
	if !s.guard.needed {
		s.guard.needed = true
		go s.startGuard()
	}
}

func (s *supervisor) startGuard() {
	s.guard.starting.Lock()
	defer s.guard.starting.Unlock()
	s.mu.Lock()
	over := s.guard.over
	s.mu.Unlock()
	if over {
		return
	}
	err := s.forkGuard()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.guard.over {
		s.log.Warn("The guard cannot be started; what tasks have started may outlive this supervisor if it is killed together with its side."+LimitOf(err), zap.Error(err))
		s.guardAgain()
	}
}

func (s *supervisor) forkGuard() error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	defer unix.Close(null)
	nothing := uintptr(null) //nolint:gosec // a descriptor
	attr := &syscall.ProcAttr{
		Dir: "/",
		// Sweeps of this instance pass it over, like the side. It is small with one processor.
		Env: withCookie([]string{
			fmt.Sprintf("%s=%d %s", early.GuardVar, os.Getpid(), s.state.dir), "GOMAXPROCS=1",
		}, sideCookie(s.state.instance), s.outer),
		Files: []uintptr{nothing, nothing, nothing},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	err = s.fork.forkIn(forking{protected: true}, "/proc/self/exe", []string{early.GuardName}, attr, func(pid int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.guard.pid, s.guard.begun = pid, time.Now()
	})
	s.reaper.wake() // it may have ended before it was known
	return err
}

// guardEnded starts the guard again if it has ended. s.mu must be held.
func (s *supervisor) guardEnded() {
	g := &s.guard
	if g.pid == 0 || !zombie(g.pid) {
		return
	}
	_, _ = syscall.Wait4(g.pid, nil, syscall.WNOHANG, nil)
	g.pid = 0
	if time.Since(g.begun) > sideSettled {
		g.pause = 0
	}
	if !g.over {
		s.log.Warn("The guard has ended; it is started again.")
		s.guardAgain()
	}
}

// guardAgain starts the guard after a while. s.mu must be held.
func (s *supervisor) guardAgain() {
	s.guard.again = time.AfterFunc(s.guard.pause, s.startGuard)
	s.guard.pause = min(max(2*s.guard.pause, sideBackoffFirst), sideBackoffMost)
}

// endGuard ends the guard and reaps it. Nothing that it could sweep is left.
func (s *supervisor) endGuard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.guard
	g.needed, g.over = true, true
	stopTimer(g.again)
	if g.pid == 0 {
		return
	}
	_ = unix.Kill(g.pid, unix.SIGKILL)
	for _, err := syscall.Wait4(g.pid, nil, 0, nil); err == syscall.EINTR; _, err = syscall.Wait4(g.pid, nil, 0, nil) { //nolint:errorlint // not wrapped
	}
	g.pid = 0
}
