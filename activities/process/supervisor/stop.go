package supervisor

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Stop stops processes; see [API].
func (s *supervisor) Stop(_ context.Context, r StopRequest) (TasksReply, error) {
	if err := checkSignal(r.Signal); err != nil {
		return TasksReply{}, err
	}
	deadline := time.Now().Add(r.Grace) // one for all of the request
	s.lifeline.catchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	var chosen []*process
	if run := s.runs[runHash(r.Run)]; run != nil {
		if err := run.checkFence(r); err != nil {
			return TasksReply{}, err
		}
		run.each(func(p *process) {
			if r.names(p) {
				chosen = append(chosen, p)
			}
		})
	}
	if s.later == nil || r.Reason != ReasonCollateral || r.Signal == int(unix.SIGKILL) {
		first := slices.DeleteFunc(slices.Clone(chosen), func(p *process) bool { return p.reason != ReasonNone })
		reached := s.stopLocked(chosen, syscall.Signal(r.Signal), deadline, r.Reason, r.Failed)
		for _, p := range first {
			if p.reason != ReasonNone {
				p.detail = r.Detail
			}
		}
		return TasksReply{Tasks: namesOf(reached)}, nil
	}
	var reached []*process
	for _, p := range chosen {
		sig := syscall.Signal(s.later(p.Key.Task).Signal)
		reached = append(reached, s.stopLocked([]*process{p}, sig, deadline, r.Reason, r.Failed)...)
	}
	return TasksReply{Tasks: namesOf(reached)}, nil
}

// names reports whether the request is for a process.
func (r StopRequest) names(p *process) bool {
	if r.Processes != nil {
		return slices.Contains(r.Processes, ProcessRef{Key: p.task.key(), Number: p.Number})
	}
	return r.reaches(p.task.id)
}

// reaches reports whether the request is for a task.
func (r StopRequest) reaches(id taskID) bool {
	if r.Tasks == nil {
		return r.Fence == nil || r.Generation == id.generation
	}
	return r.Generation == id.generation && slices.Contains(r.Tasks, id.name)
}

func (r *run) checkFence(req StopRequest) error {
	if req.Fence == nil {
		return nil
	}
	for id, t := range r.tasks {
		if req.reaches(id) && req.Fence.Less(t.fence) {
			return fenced(t.key(), *req.Fence, t.fence)
		}
	}
	return nil
}

func checkSignal(n int) error {
	if n < 1 || n > 64 {
		return refuse(ErrInvalid, fmt.Sprintf("%d is no signal", n))
	}
	return nil
}

// Signal sends one signal; see [API].
func (s *supervisor) Signal(_ context.Context, r SignalRequest) (TasksReply, error) {
	if err := checkSignal(r.Signal); err != nil {
		return TasksReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var reached []*process
	if run := s.runs[runHash(r.Run)]; run != nil {
		run.each(func(p *process) {
			if r.Generation == p.Key.Generation && slices.Contains(r.Tasks, p.Key.Task) && s.lives(p) && p.phase == running {
				s.signalGroup(p, syscall.Signal(r.Signal))
				reached = append(reached, p)
			}
		})
	}
	return TasksReply{Tasks: namesOf(reached)}, nil
}

// lives checks the process itself and not the table: a process that has just ended by itself
// must not be reported as stopped.
func (s *supervisor) lives(p *process) bool {
	if p.phase == running && zombie(p.PID) {
		s.reaper.wake()
		return false
	}
	return p.alive()
}

// stopLocked starts to stop the chosen processes that are alive and returns them. s.mu must
// be held.
func (s *supervisor) stopLocked(chosen []*process, sig syscall.Signal, deadline time.Time, reason Reason, failed bool) []*process {
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
			p.signals = append(p.signals, int(sig))
			if p.phase == running && p.deadline.After(now) {
				s.askToEnd(p, sig)
			}
		}
		if p.phase == running {
			s.armKill(p, now)
		}
	}
	return reached
}

// applyStop carries out a stop that was requested before the process ran.
func (s *supervisor) applyStop(p *process) {
	if p.deadline.IsZero() {
		return
	}
	now := time.Now()
	if p.deadline.After(now) {
		for _, sig := range p.signals {
			s.askToEnd(p, syscall.Signal(sig))
		}
	}
	s.armKill(p, now)
}

func (s *supervisor) askToEnd(p *process, sig syscall.Signal) {
	s.signalGroup(p, sig)
	if sig != unix.SIGSTOP {
		// A stopped process acts on no signal but SIGKILL.
		s.signalGroup(p, unix.SIGCONT)
	}
}

func (s *supervisor) armKill(p *process, now time.Time) {
	left := p.deadline.Sub(now)
	if left <= 0 {
		s.kill(p)
		return
	}
	if p.killTimer != nil {
		p.killTimer.Reset(left)
		return
	}
	p.killTimer = time.AfterFunc(left, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.phase == running || p.phase == ending {
			s.kill(p)
		}
		if p.phase == ending {
			s.log.Warn("What the program of a task has left running is killed, since its grace is over.", zap.Stringer("task", p.Key), zap.Int("pid", p.PID))
			s.reaper.wake()
		}
	})
}

// kill sends SIGKILL to the group and the cgroup of a process. The reaper finds the rest,
// and its bound counts from here.
func (s *supervisor) kill(p *process) {
	s.signalGroup(p, unix.SIGKILL)
	if p.cgroup != "" && s.cfg.kill == nil {
		killCgroup(p.cgroup)
	}
	if p.killed.IsZero() {
		p.killed = time.Now()
		p.bound = time.AfterFunc(s.cfg.KillBound, s.reaper.wake)
	}
}

// signalGroup signals the group of a process. The leader must not have been reaped, so that
// the number cannot belong to another group.
func (s *supervisor) signalGroup(p *process, sig syscall.Signal) {
	s.send(-p.PID, sig)
}

func (s *supervisor) send(pid int, sig syscall.Signal) {
	if s.cfg.kill != nil {
		_ = s.cfg.kill(pid, sig)
		return
	}
	_ = unix.Kill(pid, sig)
}

func namesOf(ps []*process) []string {
	var names []string
	for _, p := range ps {
		names = append(names, p.Key.Task)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
