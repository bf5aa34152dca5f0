package supervisor

import (
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
)

// supervisor is the table of processes and the parts that work on it.
type supervisor struct {
	*table
	cfg Config
	log *slog.Logger

	fork     *fork.Forker
	reaper   *reaper
	groups   *cgroups
	launcher *launcher
	stopper  *stopper
	guard    *guard
	side     *sideKeeper
	lifeline *lifeline

	// starts counts the starts that were admitted before closing.
	starts sync.WaitGroup
	// records counts the exits that are being journalled.
	records sync.WaitGroup
	// ownerGone reports whether the owner was gone when closing was closed.
	ownerGone bool
	later     func(task string) Stop // the owner's signals for the runs' own stops, or nil

	// sampling is held while processes are sampled. It is acquired before mu.
	sampling sync.Mutex
}

// kernel holds the system calls of the supervisor that tests replace.
type kernel struct {
	kill       func(pid int, sig syscall.Signal) error
	killCgroup func(dir string)
	// children lists this process's children, or at least those that were re-parented to it.
	children func() []int
}

func linux() kernel {
	return kernel{kill: unix.Kill, killCgroup: cgroup.Kill, children: newChildLister().list}
}

func newSupervisor(cfg Config, k kernel) *supervisor {
	s := &supervisor{table: newTable(cfg.State), cfg: cfg, log: cfg.Log, fork: fork.New()}
	s.fork.Protect()
	s.groups = newCgroups(cfg)
	s.reaper = newReaper(s, k)
	wake, outer := s.reaper.wake, os.Getenv(CookieVar)
	s.guard = &guard{log: s.log, fork: s.fork, wake: wake, state: s.state, outer: outer}
	s.side = newSideKeeper(cfg, s.table)
	s.side.fork, s.side.wake, s.side.outer, s.side.api = s.fork, wake, outer, s
	s.stopper = &stopper{table: s.table, log: s.log, kernel: k, bound: cfg.KillBound, wake: wake}
	s.launcher = &launcher{
		table: s.table, log: s.log, fork: s.fork, groups: s.groups, outer: outer, bound: cfg.KillBound,
		owner: newOwner(cfg.Owner), excess: s.stopper.stopLoud,
		started: func(p *process) {
			s.stopper.apply(p)
			s.stopper.watch(p)
			s.guard.need()
		},
	}
	for i := range s.launcher.relays {
		s.launcher.relays[i].Single = true
	}
	s.reaper.start()
	return s
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
