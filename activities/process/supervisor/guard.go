package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/early"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
)

// guard is this program again, under another name and in a session of its own, which does nothing
// until the supervisor dies. Then it sweeps, as the side does, which may have been killed together
// with the supervisor: by a `pkill -9` of their name, or by the kernel when memory runs out. It
// notices that by its parent-death signal, which needs no descriptor.
//
// There is none until the first process runs.
type guard struct {
	log   *slog.Logger
	fork  *fork.Forker
	wake  func() // the reaper
	state *State
	outer string // cookies of a supervisor whose task we are

	// starting is held while the guard is forked. It is acquired before mu.
	starting sync.Mutex
	mu       sync.Mutex // of all that follows
	pid      int        // until it is reaped, or 0 if there is none
	needed   bool
	over     bool // the supervisor is about to end
	begun    time.Time
	pause    time.Duration
	again    *time.Timer
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

// need starts the guard, in parallel, unless that was done.
func (g *guard) need() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.needed {
		g.needed = true
		go g.start()
	}
}

func (g *guard) start() {
	g.starting.Lock()
	defer g.starting.Unlock()
	g.mu.Lock()
	over := g.over
	g.mu.Unlock()
	if over {
		return
	}
	err := g.forkOne()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && !g.over {
		g.log.Warn("The guard cannot be started; processes of tasks may outlive this supervisor if it and its client are killed together."+fault.LimitOf(err), "error", err)
		g.startAgain()
	}
}

func (g *guard) forkOne() error {
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
			fmt.Sprintf("%s=%d %s", early.GuardVar, os.Getpid(), g.state.dir), "GOMAXPROCS=1",
		}, sideCookie(g.state.instance), g.outer),
		Files: []uintptr{nothing, nothing, nothing},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	err = g.fork.StartAs(fork.How{Protected: true}, "/proc/self/exe", []string{early.GuardName}, attr, func(pid int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.pid, g.begun = pid, time.Now()
	})
	g.wake() // it may have ended before it was known
	return err
}

// reap starts the guard again if it has ended.
func (g *guard) reap() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid == 0 || !zombie(g.pid) {
		return
	}
	_, _ = syscall.Wait4(g.pid, nil, syscall.WNOHANG, nil)
	g.pid = 0
	if time.Since(g.begun) > sideSettled {
		g.pause = 0
	}
	if !g.over {
		g.log.Warn("The guard has ended; it is started again.")
		g.startAgain()
	}
}

// startAgain starts the guard after a while. g.mu must be held.
func (g *guard) startAgain() {
	g.again = time.AfterFunc(g.pause, g.start)
	g.pause = min(max(2*g.pause, sideBackoffFirst), sideBackoffMost)
}

// end ends the guard and reaps it. Nothing that it could sweep is left.
func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
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

// is reports whether a process is the guard.
func (g *guard) is(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return pid == g.pid
}
