package supervisor

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// supervisor is the table of processes and the parts that work on it.
//
// mu guards the table; the disk is not used while it is held. The journals have locks
// of their own, and so have the ports of a run. mu may be locked while
// these or the forker's window are held, but never the other way round.
type supervisor struct {
	cfg    Config
	state  *State
	log    *zap.Logger
	cgroup string // of the instance; empty if there is none
	// controllers are the controllers of the cgroups of processes.
	controllers ControllersReply
	outer       string // cookies of a supervisor whose task we are

	owner  owner
	relays [2]outputs // to the owner's stdout and stderr; see relayOf
	fork   *forker
	reaper *reaper

	mu   sync.Mutex
	runs map[string]*run
	// archives counts the runs that were deleted from runs, and are on disk only.
	archives int
	living   map[int]*process // by the leader's pid, until it is reaped
	side     int              // the side's pid, until it is reaped
	guard    guard
	// ownersSide is the link to a side in the owner's process, until that has ended.
	ownersSide *sideLink
	// sideEnded receives the status of a side that has ended.
	sideEnded chan syscall.WaitStatus
	// starts counts the starts that have passed the check for closing.
	starts sync.WaitGroup
	// records counts the exits that are being journalled.
	records   sync.WaitGroup
	closing   chan struct{}
	ownerGone bool
	recorded  bool // whether the server knows what the side would report at the end
	lifeline  *lifeline
	later     func(task string) Stop // the owner's signals for the runs' own stops; nil if there are none
	boot      *bootTimer
	bootNext  int64
	noCgroup  bool // the kernel allows cgroups, but no starts in them

	// sampling is held while processes are sampled. It is acquired before mu.
	sampling sync.Mutex

	// program is that of the side, and next the one that was requested. The other fields are for
	// the same goroutine, keepSide's.
	program, next *program
	upgrades      int
	// emptied gets an element when a run was released, and replaced is closed when the supervisor
	// is to be replaced.
	emptied  chan struct{}
	replaced chan struct{}
}

func newSupervisor(cfg Config) *supervisor {
	s := &supervisor{
		cfg:       cfg,
		state:     cfg.State,
		log:       cfg.Log,
		outer:     os.Getenv(CookieVar),
		owner:     newOwner(cfg.Owner),
		runs:      cfg.State.runs,
		living:    make(map[int]*process),
		sideEnded: make(chan syscall.WaitStatus, 1),
		closing:   make(chan struct{}),
		emptied:   make(chan struct{}, 1),
		replaced:  make(chan struct{}),
		upgrades:  cfg.State.tries,
		fork:      newForker(),
	}
	for i := range s.relays {
		s.relays[i].single = true
	}
	s.fork.score = protect(oomFile)
	if !cfg.NoCgroups {
		s.cgroup = makeInstanceCgroup(s.state.instance)
	}
	s.controllers = delegate(s.cgroup, os.Getpid())
	if s.cgroup != "" {
		if err := writeCgroupFile(s.state.dir, s.state.boot, s.cgroup); err != nil {
			s.log.Warn("The location of the cgroups is not recorded; processes that leave their session may outlive a killed supervisor.", zap.Error(err))
		}
	}
	s.reaper = newReaper(s)
	for _, pid := range s.reaper.children.list() {
		s.reaper.foreign[pid] = true
	}
	s.reaper.start()
	return s
}

// lockRun locks s.mu and returns a run, even one that was released and is only on disk; nil if
// this host never had it. The disk may hang, so it is read before s.mu is locked.
func (s *supervisor) lockRun(key runkey.Run) *run {
	hash := runHash(key)
	s.mu.Lock()
	r := s.runs[hash]
	for r == nil {
		before := s.archives
		s.mu.Unlock()
		archived := s.state.archived(hash)
		s.mu.Lock()
		if r = s.runs[hash]; r != nil || archived == nil && s.archives != before {
			continue // the run was added meanwhile, or may have been added and archived
		}
		if r = archived; r == nil {
			return nil
		}
	}
	if r.key == (runkey.Run{}) {
		r.key = key // its journal has lost the line with the key
	}
	return r
}

// lockOrAddRun is like lockRun but adds the run if this host never had it.
func (s *supervisor) lockOrAddRun(key runkey.Run) *run {
	if r := s.lockRun(key); r != nil {
		return r
	}
	hash := runHash(key)
	r := newRun(hash, key)
	r.journal = newJournal(s.state.journalPath(hash), key)
	r.journal.volatile = s.state.volatile
	s.runs[hash] = r
	return r
}

func (r *run) damageError() error {
	return refuse(ErrDamaged, fmt.Sprintf("the journal of run %s was damaged (see %s): what this host did for it is not known, so its tasks count as lost with the host", r.key.WorkflowID, r.damaged))
}

func (s *supervisor) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

func (s *supervisor) wasReplaced() bool {
	select {
	case <-s.replaced:
		return true
	default:
		return false
	}
}

// zombie reports whether a child has ended and waits to be reaped.
func zombie(pid int) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil && info.Signo != 0
		}
	}
}

// pick returns the living processes that f picks. mu must be held.
func (s *supervisor) pick(f func(*process) bool) []*process {
	var out []*process
	for _, r := range s.runs {
		r.each(func(p *process) {
			if p.phase != ended && f(p) {
				out = append(out, p)
			}
		})
	}
	return out
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
