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

// guard is this program under another name and in its own session. It waits until the supervisor
// dies, and then sweeps like the side, because the supervisor and the side may have been killed
// together, by a `pkill -9` of their name or by the kernel when memory runs out. It is notified by
// its parent-death signal, which does not need a descriptor.
//
// It starts with the first lease of ports, or else with the first process.
type guard struct {
	log   *slog.Logger
	fork  *fork.Forker
	wake  func() // the reaper
	state *State
	outer string // cookies of a supervisor that runs us

	// starting is held while the guard is forked. It is acquired before mu.
	starting sync.Mutex
	mu       sync.Mutex // guards the following fields
	pid      int        // until reaped, or 0
	needed   bool
	over     bool // the supervisor is shutting down
	begun    time.Time
	pause    time.Duration
	again    *time.Timer
}

// In any program that contains a supervisor, a guard does only this.
func init() {
	if supervisor, dir, ok := early.Bereft(); ok {
		if _, err := sweepAfterLoss(context.Background(), dir, supervisor); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// need starts the guard in parallel, unless already done.
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
		g.log.Warn("The guard could not be started; tasks' processes may outlive this supervisor if it and its client are killed together."+fault.LimitOf(err), "error", err)
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
		// Sweeps of this instance skip it, as they skip the side. Using a single processor keeps it
		// small.
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
	g.wake() // it may have exited before its pid was known
	return err
}

// reap restarts the guard if it has exited.
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
		g.log.Warn("The guard exited; restarting it.")
		g.startAgain()
	}
}

// startAgain restarts the guard after a while. g.mu must be held.
func (g *guard) startAgain() {
	g.again = time.AfterFunc(g.pause, g.start)
	g.pause = min(max(2*g.pause, sideBackoffFirst), sideBackoffMost)
}

// stop kills the guard, when nothing is left to sweep.
func (g *guard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.needed, g.over = true, true
	stopTimer(g.again)
	if g.pid != 0 {
		_ = unix.Kill(g.pid, unix.SIGKILL)
	}
}

// end stops and reaps the guard.
func (g *guard) end() {
	g.stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid == 0 {
		return
	}
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
