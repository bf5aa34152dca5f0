package supervisor

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// stopRest starts stopping the processes that a leader left running when it exited. If the leader
// was being stopped, the rest of its grace applies. Otherwise they are stopped with the task's
// signal and grace, since they may be saving something or about to exit. s.table.mu must be held.
func (s *stopper) stopRest(p *process) {
	if !p.killed.IsZero() {
		s.kill(p)
		return
	}
	now := time.Now()
	asked := p.toGroup && len(p.signals) > 0
	if len(p.signals) == 0 {
		p.request(syscall.Signal(p.stop.Signal), now)
		p.shorten(now.Add(p.stop.Grace))
	}
	p.toGroup = true
	if !asked && p.deadline.After(now) {
		s.askAgain(p)
	}
	s.armKill(p, now)
}

// askAgain resends a stop's signals, now to everything they reach.
func (s *stopper) askAgain(p *process) {
	for _, sig := range p.signals {
		s.ask(p, syscall.Signal(sig))
	}
}

// groupAt returns when a stopping process's group gets its signals although the leader lives, in
// the last tenth of the grace.
func (p *process) groupAt() time.Time {
	return p.deadline.Add(-p.deadline.Sub(p.askedAt) / 10)
}

// askGroups signals the groups of all processes whose graces have nearly expired. It skips the
// leaders, which might interpret a second signal as an order to quit immediately, so it must search
// for the other members. One search, in parallel, finds them for all groups. s.table.mu must be
// held.
func (s *stopper) askGroups(now time.Time) {
	signals := make(map[int][]int) // by group
	for pid, p := range s.table.living {
		if p.phase == running && !p.toGroup && len(p.signals) > 0 && !p.groupAt().After(now) {
			p.toGroup = true
			signals[pid] = slices.Clone(p.signals)
		}
	}
	go func() {
		pids, _ := proc.PIDs()
		for _, pid := range pids {
			stat, err := proc.ReadStat(pid)
			if err != nil || pid == stat.Group || stat.Dead() {
				continue
			}
			for _, sig := range signals[stat.Group] {
				proc.Signal(pid, stat.Ticks, unix.Signal(sig))
			}
		}
	}()
}

// shorten sets a process's deadline, or brings it forward.
func (p *process) shorten(at time.Time) {
	if p.deadline.IsZero() || at.Before(p.deadline) {
		p.deadline = at
	}
}

// hastenRest brings forward the deadline of processes that a leader left running when it exited.
// s.table.mu must be held.
func (s *stopper) hastenRest(p *process, at, now time.Time) {
	switch {
	case p.phase == running: // its leader is a zombie that the reaper has not yet found
		p.shorten(at)
	case p.phase == ending && p.killed.IsZero():
		p.shorten(at)
		s.armKill(p, now)
		s.wake()
	}
}

// askOrphan signals an orphan once. Its task's group was already signaled. s.table.mu must be held.
func (s *stopper) askOrphan(pid int, o *orphan) {
	if o.asked {
		return
	}
	o.asked = true
	if group, err := unix.Getpgid(pid); err == nil && group == o.owner.PID {
		return
	}
	for _, sig := range o.owner.signals {
		s.send(pid, syscall.Signal(sig))
	}
	if !slices.Contains(o.owner.signals, int(unix.SIGSTOP)) {
		s.send(pid, unix.SIGCONT)
	}
}

// tellRestAfter is how long the processes that a leader left may run before this is logged.
const tellRestAfter = 100 * time.Millisecond

// tellRest logs once why a process outlives its leader. s.table.mu must be held.
func (s *stopper) tellRest(p *process, left int) {
	if p.toldRest || time.Since(p.endedAt) < tellRestAfter {
		return
	}
	p.toldRest = true
	s.log.Info("A task's program has exited and left processes running; they were asked to stop, and will be killed after the grace period.",
		"task", p.Key, "pid", p.PID, "processes", left,
		"signals", p.signals, "left", time.Until(p.deadline).Round(time.Millisecond))
}
