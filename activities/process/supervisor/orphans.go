package supervisor

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

type orphan struct {
	ticks uint64
	// owner is the process that it descends from, or nil if unknown.
	owner *process
	// ours reports whether the orphan belongs to this instance, but to a process that is no longer
	// known.
	ours    bool
	unknown bool // not attributed yet
	swept   bool // counted with its owner
	asked   bool // it was asked to exit
}

// reapOrphans reaps children that have exited and that this process did not start, and updates the
// list of living ones.
//
// A child that exits between listing and reaping leaves children that the list does not contain, so
// a list counts only if nothing was reaped after it. If orphans keep coming and going, no list
// counts, and it is unknown what is left.
func (r *reaper) reapOrphans() {
	for range listsAtOnce {
		r.unsure = !r.meetOrphans()
		if r.reapKnown() == 0 {
			return
		}
	}
	r.unsure = true
}

// listsAtOnce limits how many times a pass lists the children.
const listsAtOnce = 8

// meetOrphans records new children. It reports whether it could list them.
func (r *reaper) meetOrphans() bool {
	var fresh []int
	for _, pid := range r.children() {
		if r.orphans[pid] == nil {
			fresh = append(fresh, pid)
		}
	}
	return len(fresh) == 0 || r.meet(fresh)
}

// reapKnown reaps the exited orphans and returns their number.
func (r *reaper) reapKnown() int {
	reaped := 0
	for pid, o := range r.orphans {
		if o.unknown && !r.foreign[pid] && zombie(pid) {
			r.attribute(pid, o) // impossible once it is reaped
		}
		var used syscall.Rusage
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, &used)
		if got == pid && o.owner != nil {
			r.s.mu.Lock()
			o.owner.charge(&used)
			if o.owner.phase == ending {
				o.count()
				if !o.owner.killed.IsZero() && status.Signaled() && status.Signal() == unix.SIGKILL {
					o.owner.killedOf++
				}
			}
			r.s.mu.Unlock()
		}
		if got == pid || err == syscall.ECHILD {
			delete(r.orphans, pid)
			delete(r.foreign, pid)
			reaped++
		}
	}
	return reaped
}

// meet distinguishes orphans from new children that the supervisor started.
func (r *reaper) meet(pids []int) bool {
	s := r.s
	// A starting child is not in the table yet.
	return s.fork.Between(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		side := s.side.current()
		for _, pid := range pids {
			if s.living[pid] == nil && pid != side && !s.guard.is(pid) {
				r.orphans[pid] = &orphan{unknown: true}
			}
		}
	})
}

// stopLeftovers stops the orphans of ended processes and counts them by process. Orphans whose
// process is unknown are killed, and counted under nil.
func (r *reaper) stopLeftovers() map[*process]int {
	rest := make(map[*process]int)
	if len(r.orphans) == 0 {
		return rest
	}
	s := r.s
	for pid, o := range r.orphans {
		if o.unknown && !r.foreign[pid] {
			r.attribute(pid, o)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, o := range r.orphans {
		if r.foreign[pid] || o.unknown || o.owner == nil && !o.ours && !r.ownerless(o) {
			continue
		}
		p := o.owner
		if p != nil && (p.phase == starting || p.phase == running) {
			continue // A living task's daemon may continue.
		}
		if p != nil && p.phase == ending && p.killed.IsZero() {
			s.stopper.askOrphan(pid, o)
		} else {
			s.stopper.send(pid, unix.SIGKILL)
		}
		o.count()
		if p != nil && p.phase != ending {
			p = nil
		}
		rest[p]++
	}
	return rest
}

// count counts, once, an orphan that has outlived its owner. The supervisor's mu must be held.
func (o *orphan) count() {
	if o.owner != nil && !o.swept {
		o.swept = true
		o.owner.swept++
	}
}

// attribute finds the process that an orphan descends from.
func (r *reaper) attribute(pid int, o *orphan) {
	stat, err := proc.ReadStat(pid)
	if err != nil {
		return
	}
	o.ticks, o.unknown = stat.Ticks, false
	cookie := ofInstance(readCookies(pid), r.s.state.instance)
	if cookie == sideCookie(r.s.state.instance) || stat.Session == r.session {
		r.foreign[pid] = true // every task has its own session
		return
	}
	group := ""
	if cookie == "" && r.s.groups.dir != "" {
		group = cgroup.Of(pid, r.s.state.instance)
	}
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.living[stat.Session]; p != nil {
		o.owner = p
		return
	}
	if cookie != "" {
		o.ours = true
		o.owner = s.byCookie(cookie)
		return
	}
	if group != "" {
		for _, p := range s.living {
			if p.cgroup != "" && filepath.Base(p.cgroup) == group {
				o.owner = p
				return
			}
		}
	}
}

// ownerless reports whether an orphan without a cookie must belong to an ended task, because all
// processes that could have started it have ended. One of them then waits for it. If the supervisor
// is the host's process 1, it also inherits other programs' orphans, and leaves unknown ones alone.
func (r *reaper) ownerless(o *orphan) bool {
	if os.Getpid() == 1 {
		return false
	}
	var last *process
	for _, p := range r.s.living {
		switch {
		case p.ticks > o.ticks:
		case p.phase == running:
			return false
		case p.phase == ending:
			last = p
		}
	}
	o.owner = last
	return true
}
