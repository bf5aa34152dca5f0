package supervisor

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// reaper detects when children exit, reaps them, and stops the processes that task leaders leave
// behind. It is one goroutine, woken by SIGCHLD.
//
// A leader is not reaped before the rest of its process is gone, so that its process ID, which is
// also the group's ID, cannot be reused by an unrelated process. This is also why the reaper does
// not loop over waitid(P_ALL), in which the zombies that it keeps would hide all other children.
// Instead it calls waitid for each leader, which costs a system call per task and wake-up but does
// not read /proc.
//
// The rest of a process is found by descent, not by search. This process is a subreaper, so once
// the leader is a zombie, its remaining processes descend from children that this process did not
// start, whether or not they are in the group. These children are attributed by session, cookie or
// cgroup. There are nearly always none.
type reaper struct {
	s       *supervisor
	signals chan os.Signal
	nudge   chan struct{}
	quit    chan struct{}
	stopped chan struct{}

	children func() []int // see kernel
	session  int          // the supervisor's own
	// foreign holds children that are not part of a task, which were started before an exec or by
	// the side. They are reaped and otherwise left alone.
	foreign map[int]bool
	// orphans holds the children that this process did not start, each until it is reaped and its
	// pid can be reused. Only the reaper's goroutine uses it.
	orphans map[int]*orphan
	// unsure reports whether the owner of some children is not yet known.
	unsure bool
	again  *time.Timer
	pause  time.Duration
}

func newReaper(s *supervisor, k kernel) *reaper {
	r := &reaper{
		s:        s,
		signals:  make(chan os.Signal, 1),
		nudge:    make(chan struct{}, 1),
		quit:     make(chan struct{}),
		stopped:  make(chan struct{}),
		children: k.children,
		foreign:  make(map[int]bool),
		orphans:  make(map[int]*orphan),
	}
	if stat, err := proc.ReadStat(os.Getpid()); err == nil {
		r.session = stat.Session
	}
	r.again = time.NewTimer(time.Hour)
	r.again.Stop()
	for _, pid := range r.children() {
		r.foreign[pid] = true
	}
	return r
}

func (r *reaper) start() {
	signal.Notify(r.signals, unix.SIGCHLD)
	go r.loop()
}

func (r *reaper) wake() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

func (r *reaper) loop() {
	defer close(r.stopped)
	for {
		select {
		case <-r.signals:
		case <-r.nudge:
		case <-r.again.C:
		case <-r.quit:
			r.drain()
			return
		}
		r.pass()
	}
}

// drain waits, at the end, for orphans without a cookie, which were left alone while any task might
// have owned them.
func (r *reaper) drain() {
	deadline := time.After(r.s.cfg.KillBound)
	for r.pass() {
		select {
		case <-r.signals:
		case <-r.again.C:
		case <-deadline:
			r.s.log.Error("Descendants of tasks are still alive after SIGKILL.", "processes", len(r.orphans))
			return
		}
	}
}

func (r *reaper) close() {
	close(r.quit)
	<-r.stopped
	signal.Stop(r.signals)
	r.again.Stop()
}

const (
	pauseFirst = time.Millisecond
	pauseMost  = 100 * time.Millisecond
	// strayMost limits the wait for orphans that do not belong to a task.
	strayMost = 5 * time.Second
)

// pass checks everything once, and reports whether any process has yet to end.
func (r *reaper) pass() bool {
	r.reapOrphans()
	waiting := r.findEnded()
	if len(waiting) > 0 {
		r.reapOrphans() // a signal usually works immediately
	}
	rest := r.stopLeftovers()
	lingering := false
	for _, p := range waiting {
		if r.finish(p, rest[p]) {
			lingering = true
		}
	}
	if len(waiting) > 0 && !lingering {
		rest = r.stopLeftovers() // some orphans may have just lost their last possible owner
	}
	// SIGCHLD announces most changes, but not those of a cgroup.
	if lingering || rest[nil] > 0 {
		most := pauseMost
		if !lingering {
			most = strayMost
		}
		r.pause = min(max(2*r.pause, pauseFirst), most)
		r.again.Reset(r.pause)
		return true
	}
	r.pause = 0
	return false
}

// findEnded marks the leaders that have exited and returns all processes that the reaper must
// handle.
func (r *reaper) findEnded() []*process {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.side.reap()
	s.guard.reap()
	var dead []*process
	// Repeat until no further leader is found. A leader that is found later may have exited
	// earlier, so all leaders in one pass get the same time.
	for more := true; more; {
		more = false
		for _, p := range s.living {
			if (p.phase == running || p.phase == abandoned) && zombie(p.PID) {
				if p.phase == abandoned {
					r.reapAbandoned(p)
					continue
				}
				p.phase = ending
				dead = append(dead, p)
				more = true
			}
		}
	}
	now, boot := time.Now().UTC(), BootNanos()
	for _, p := range dead {
		p.endedAt, p.endedBoot = now, boot
		s.stopper.stopRest(p)
	}
	var waiting []*process
	for _, p := range s.living {
		if p.phase == ending || p.phase == running && r.overBound(p) {
			waiting = append(waiting, p)
		}
	}
	return waiting
}

func (r *reaper) overBound(p *process) bool {
	return !p.killed.IsZero() && time.Since(p.killed) >= r.s.cfg.KillBound
}

func (r *reaper) reapAbandoned(p *process) {
	_, _ = syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil)
	delete(r.s.living, p.PID)
	if p.cgroup != "" {
		r.s.records.Go(func() { cgroup.Remove(p.cgroup) })
	}
}

// finish reaps a leader when its descendants are gone, or gives up on it. It reports whether the
// process must be rechecked.
func (r *reaper) finish(p *process, left int) bool {
	s := r.s
	used := p.cgroupUsage()
	oomKills, oomScope := s.groups.oomKills(p)
	empty := left == 0 && !r.unsure && (p.cgroup == "" || !cgroup.Populated(p.cgroup))
	s.mu.Lock()
	defer s.mu.Unlock()
	over := r.overBound(p)
	if p.phase == ending && !empty && !over {
		if p.killed.IsZero() {
			s.stopper.tellRest(p, left)
			return true
		}
		if p.cgroup != "" {
			s.stopper.kernel.killCgroup(p.cgroup)
		}
		s.stopper.signalGroup(p, unix.SIGKILL)
		return true
	}
	exit := &Exit{Reason: p.reason, Detail: p.detail, Swept: p.swept, Killed: p.killedOf, Failed: p.failed, Ended: p.endedAt, BootNanos: p.endedBoot}
	stopTimer(p.bound)
	stopTimer(p.killTimer)
	if p.phase == running {
		// The process does not die. It remains in the table, to be reaped if it ever does.
		p.phase = abandoned
		exit.Code, exit.Unkillable, exit.Left = -int(unix.SIGKILL), true, []Survivor{{p.PID, p.ticks}}
		exit.Ended, exit.BootNanos = time.Now().UTC(), BootNanos()
		exit.Usage = p.used(&syscall.Rusage{}, used)
	} else {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		for {
			_, err := syscall.Wait4(p.PID, &status, 0, &usage)
			if err != syscall.EINTR {
				break
			}
		}
		delete(s.living, p.PID)
		p.phase = ended
		if !empty {
			exit.Unkillable, exit.Left = true, r.survivors(p)
		}
		exit.Code = status.ExitStatus()
		if status.Signaled() {
			exit.Code = -int(status.Signal())
		}
		exit.Usage = p.used(&usage, used)
	}
	if exit.Reason == ReasonNone && exit.Code < 0 && slices.Contains(p.sent, -exit.Code) {
		exit.Sent = true
	}
	s.groups.setOOM(p, exit, oomKills, oomScope)
	if exit.Detail == "" && exit.Reason == ReasonShutdown && exit.Code == -int(unix.SIGKILL) {
		exit.Detail = p.cutGrace(s.cfg.LongestGrace)
	}
	if exit.Unkillable {
		s.log.Error("A process is still alive after SIGKILL; abandoning it.", "task", p.Key, "pid", p.PID)
	}
	// Writing may be slow on a bad disk; other processes must not wait.
	s.records.Go(func() { s.recordExit(p, exit) })
	return false
}

// survivors returns the processes that a leader left running and that have survived SIGKILL.
func (r *reaper) survivors(p *process) (left []Survivor) {
	for pid, o := range r.orphans {
		if o.owner == p {
			left = append(left, Survivor{pid, o.ticks})
		}
	}
	if p.cgroup == "" {
		return left
	}
	for _, pid := range cgroup.PIDs(p.cgroup) {
		if stat, err := proc.ReadStat(pid); err == nil && !stat.Dead() && r.orphans[pid] == nil {
			left = append(left, Survivor{pid, stat.Ticks})
		}
	}
	return left
}

// cutGrace returns what cut a killed process's grace short, or "".
func (p *process) cutGrace(longest time.Duration) string {
	const late = time.Second // a timer's maximum delay
	given := p.killed.Sub(p.askedAt)
	switch {
	case p.killed.IsZero() || given+late > p.stop.Grace:
		return ""
	case given.Round(late) >= longest: // the grace counts from the request, which was a little earlier
		return fmt.Sprintf("its grace period of %s was cut to %s (--longest-grace)", p.stop.Grace, longest)
	}
	return fmt.Sprintf("its grace period of %s was cut to %s", p.stop.Grace, given.Round(time.Second))
}

// recordExit journals an exit and then publishes it, because an exit that was published must still
// be known after a restart.
func (s *supervisor) recordExit(p *process, exit *Exit) {
	r := p.task.run
	s.launcher.endOutput(p, exit)
	err := r.journal.keep(record{
		Type: recExited, Generation: p.Key.Generation, Task: p.Key.Task, Number: p.Number, Exit: exit,
	})
	if err != nil {
		s.log.Error("An exit could not be written to the journal yet.", "task", p.Key, "error", err)
	}
	s.mu.Lock()
	p.Exit = exit
	r.touched = time.Now()
	abandonedNow := p.phase == abandoned
	s.mu.Unlock()
	close(p.done)
	if p.cgroup != "" && !abandonedNow {
		r.files <- struct{}{}
		cgroup.Remove(p.cgroup)
		<-r.files
	}
}
