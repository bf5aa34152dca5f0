package supervisor

import (
	"log/slog"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopper stops processes. It signals their programs and later their groups, and kills them when
// their grace or time is over. The reaper detects their exits. Unless documented otherwise, methods
// require the table's lock.
type stopper struct {
	table  *table
	log    *slog.Logger
	kernel kernel
	bound  time.Duration // see [Config.KillBound]
	wake   func()        // the reaper

	boot     *bootTimer // for deadlines; nil until the first
	bootNext int64
}

// lives checks the process rather than the table, because a process that has just exited must not
// be reported as stopped.
func (s *stopper) lives(p *process) bool {
	if p.phase == running && zombie(p.PID) {
		s.wake()
		return false
	}
	return p.alive()
}

// stop starts stopping the chosen living processes and returns them. s.table.mu must be held.
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
		// A program that is cleaning up might interpret a second signal as an order to quit
		// immediately.
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

// request records a stop signal for the process.
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
		// A stopped process acts only on SIGKILL.
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
			s.log.Warn("Killing processes that a task's program left running, because their grace period is over.", "task", p.Key, "pid", p.PID)
			s.wake()
		}
	})
}

// kill sends SIGKILL to a process's group and cgroup. The reaper finds the remaining processes. The
// time limit for their exit starts here.
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

// signalGroup signals a process's group. The leader must not be reaped yet, or the number may
// belong to another group.
func (s *stopper) signalGroup(p *process, sig syscall.Signal) {
	s.send(-p.PID, sig)
}

func (s *stopper) send(pid int, sig syscall.Signal) { _ = s.kernel.kill(pid, sig) }

// manner returns how each process is stopped.
type manner func(*process) Stop

// way returns how a process is stopped, according to its task.
func (a Stops) way(p *process) Stop { return a.of(p.Key.Task) }

// stopAll stops all processes and returns them. Graces count from begun.
func (s *stopper) stopAll(how manner, begun time.Time) []*process {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	all := s.table.pick(func(p *process) bool { return p.phase != abandoned })
	s.stopEach(all, how, begun, ReasonShutdown)
	return all
}

// stopEach stops each process as determined by how. Graces count from begun. The caller must hold
// mu.
func (s *stopper) stopEach(all []*process, how manner, begun time.Time, why Reason) {
	for _, p := range all {
		stop := how(p)
		s.stop([]*process{p}, syscall.Signal(stop.Signal), begun.Add(stop.Grace), why, false)
	}
}

// stopLoud stops a process that wrote too much output.
func (s *stopper) stopLoud(p *process) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.stop([]*process{p}, unix.SIGKILL, time.Now(), ReasonLogQuota, false)
}
