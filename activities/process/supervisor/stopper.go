package supervisor

import (
	"log/slog"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopper stops processes: it signals their programs, later their groups, and kills them when their
// grace or their time is over. The reaper notices their ends. Unless a method says otherwise, the table must be locked.
type stopper struct {
	table  *table
	log    *slog.Logger
	kernel kernel
	bound  time.Duration // see [Config.KillBound]
	wake   func()        // the reaper

	boot     *bootTimer // of deadlines; nil until there is one
	bootNext int64
}

// lives checks the process itself rather than the table: a process that has just ended by
// itself must not be reported as stopped.
func (s *stopper) lives(p *process) bool {
	if p.phase == running && zombie(p.PID) {
		s.wake()
		return false
	}
	return p.alive()
}

// stop starts to stop the chosen processes that are alive and returns them. s.table.mu must
// be held.
func (s *stopper) stop(chosen []*process, sig syscall.Signal, deadline time.Time, reason Reason, failed bool) []*process {
	now := time.Now()
	var reached []*process
	for _, p := range chosen {
		at := deadline
		if sig == unix.SIGKILL {
			at = now
		}
		if !s.lives(p) {
			s.hastenRest(p, at, now)
			continue
		}
		reached = append(reached, p)
		if p.reason == ReasonNone {
			p.reason, p.failed = reason, failed
		}
		p.shorten(at)
		// A program that is cleaning up might take a second signal as an order to quit at
		// once.
		if !slices.Contains(p.signals, int(sig)) {
			p.request(sig, now)
			if p.phase == running && p.deadline.After(now) {
				s.ask(p, sig)
			}
		}
		if p.phase == running {
			s.armKill(p, now)
		}
	}
	return reached
}

// apply carries out a stop that was requested before the process ran.
func (s *stopper) apply(p *process) {
	if p.deadline.IsZero() {
		return
	}
	now := time.Now()
	if p.deadline.After(now) {
		s.askAgain(p)
	}
	s.armKill(p, now)
}

// request notes a signal that asks the process to end.
func (p *process) request(sig syscall.Signal, now time.Time) {
	if len(p.signals) == 0 {
		p.askedAt = now
	}
	p.signals = append(p.signals, int(sig))
}

func (s *stopper) ask(p *process, sig syscall.Signal) {
	if p.toGroup {
		s.signalGroup(p, sig)
	} else {
		s.send(p.PID, sig)
	}
	if sig != unix.SIGSTOP {
		// A stopped process acts on no signal but SIGKILL.
		s.signalGroup(p, unix.SIGCONT)
	}
}

func (s *stopper) armKill(p *process, now time.Time) {
	if !p.deadline.After(now) {
		s.kill(p)
		return
	}
	next := p.deadline
	if !p.toGroup {
		next = p.groupAt()
	}
	if p.killTimer != nil {
		p.killTimer.Reset(next.Sub(now))
		return
	}
	p.killTimer = time.AfterFunc(next.Sub(now), func() {
		s.table.mu.Lock()
		defer s.table.mu.Unlock()
		if now := time.Now(); p.phase == running && p.deadline.After(now) {
			if !p.toGroup {
				s.askGroups(now)
			}
			s.armKill(p, now)
			return
		}
		if p.phase == running || p.phase == ending {
			s.kill(p)
		}
		if p.phase == ending {
			s.log.Warn("Processes that the program of a task left running are killed, since their grace is over.", "task", p.Key, "pid", p.PID)
			s.wake()
		}
	})
}

// kill sends SIGKILL to the group and the cgroup of a process. The reaper finds the rest,
// and its bound counts from here.
func (s *stopper) kill(p *process) {
	s.signalGroup(p, unix.SIGKILL)
	if p.cgroup != "" {
		s.kernel.killCgroup(p.cgroup)
	}
	if p.killed.IsZero() {
		p.killed = time.Now()
		p.bound = time.AfterFunc(s.bound, s.wake)
	}
}

// signalGroup signals the group of a process. The leader must not have been reaped, so that
// the number cannot belong to another group.
func (s *stopper) signalGroup(p *process, sig syscall.Signal) {
	s.send(-p.PID, sig)
}

func (s *stopper) send(pid int, sig syscall.Signal) { _ = s.kernel.kill(pid, sig) }

// manner says how each process is stopped.
type manner func(*process) Stop

// way returns how a process is stopped: in the way of its task.
func (a Stops) way(p *process) Stop { return a.of(p.Key.Task) }

// stopAll stops all processes and returns them. The graces count from begun.
func (s *stopper) stopAll(how manner, begun time.Time) []*process {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	all := s.table.pick(func(p *process) bool { return p.phase != abandoned })
	s.stopEach(all, how, begun, ReasonShutdown)
	return all
}

// stopEach stops each process in its way. The graces count from begun. The caller must hold mu.
func (s *stopper) stopEach(all []*process, how manner, begun time.Time, why Reason) {
	for _, p := range all {
		stop := how(p)
		s.stop([]*process{p}, syscall.Signal(stop.Signal), begun.Add(stop.Grace), why, false)
	}
}

// stopLoud stops a process that has written too much.
func (s *stopper) stopLoud(p *process) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.stop([]*process{p}, unix.SIGKILL, time.Now(), ReasonLogQuota, false)
}
