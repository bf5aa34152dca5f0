package supervisor

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// stopRest starts to stop what a leader that has just ended leaves running. If the leader was
// being stopped, the rest of its grace applies. If it has ended by itself, they are stopped as its
// task is: they may be saving something, or about to end.
// s.table.mu must be held.
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

// askAgain sends the signals of a stop once more, now to all whom they reach.
func (s *stopper) askAgain(p *process) {
	for _, sig := range p.signals {
		s.ask(p, syscall.Signal(sig))
	}
}

// groupAt returns when the group of a process that is being stopped gets its signals although its
// leader lives: in the last tenth of its grace.
func (p *process) groupAt() time.Time {
	return p.deadline.Add(-p.deadline.Sub(p.askedAt) / 10)
}

// askGroups asks the groups of all processes whose graces are nearly over to end. The leaders have
// been asked, and might take a second signal as an order to quit at once. So the members are found
// by one search, in parallel. s.table.mu must be held.
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

// shorten brings the deadline of a process forward, or sets it.
func (p *process) shorten(at time.Time) {
	if p.deadline.IsZero() || at.Before(p.deadline) {
		p.deadline = at
	}
}

// hastenRest moves the deadline of the processes that an ended leader left running forward.
// s.table.mu must be held.
func (s *stopper) hastenRest(p *process, at, now time.Time) {
	switch {
	case p.phase == running: // a zombie that the reaper has not seen
		p.shorten(at)
	case p.phase == ending && p.killed.IsZero():
		p.shorten(at)
		s.armKill(p, now)
		s.wake()
	}
}

// askOrphan asks an orphan to end, once. The group of its task has been asked. s.table.mu must be held.
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

// tellRestAfter is the time that processes which a leader left running have to end before a
// message is logged.
const tellRestAfter = 100 * time.Millisecond

// tellRest logs once why a process whose leader has ended has not ended. s.table.mu must be held.
func (s *stopper) tellRest(p *process, left int) {
	if p.toldRest || time.Since(p.endedAt) < tellRestAfter {
		return
	}
	p.toldRest = true
	s.log.Info("The program of a task has ended and left processes running; they were asked to end, and are killed when the grace is over.",
		"task", p.Key, "pid", p.PID, "processes", left,
		"signals", p.signals, "left", time.Until(p.deadline).Round(time.Millisecond))
}
