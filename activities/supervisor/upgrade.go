package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/retry"
	"github.com/clusterrun/clusterrun/activities/supervisor/internal/early"
)

// Upgrade configures how another program takes over: it is executed in this process, which keeps
// its number, its children and its open files. Before that it has to prove that it understands
// what it is handed; see [Answer].
type Upgrade struct {
	// Path is the file of the program, and Check its arguments, without its name, with which it calls
	// [Answer].
	Path  string
	Check []string
	// Version is that of the program that runs.
	Version string
	// Program is what it has to say to the next: JSON, which [Inherit] returns.
	Program json.RawMessage

	// By [Config.ObeySignals]: an element for each request, and what listens for signals again where
	// the program could not be executed. They are ignored from just before that.
	requests <-chan struct{}
	listen   func()
}

const (
	// quietBound is how long what is in progress may take before a try is given up. Meanwhile
	// nothing is answered.
	quietBound = 5 * time.Second
	// checkBound is how long a program may take for an answer.
	checkBound = 10 * time.Second
)

// awaitSide returns when the side has ended. killed reports whether it was killed for an upgrade
// to a program that has shown that it knows how to take over.
func (s *supervisor) awaitSide() (status syscall.WaitStatus, killed bool) {
	var requests <-chan struct{}
	if s.cfg.Upgrade != nil {
		requests = s.cfg.Upgrade.requests
	}
	for {
		select {
		case status := <-s.sideEnded:
			return status, false
		case <-requests:
		}
		if s.isClosing() {
			continue
		}
		next, err := s.callSuccessor()
		if err != nil {
			s.refuse(err)
			continue
		}
		if err := s.awaitStarts(); err != nil {
			next.close()
			s.refuse(err)
			continue
		}
		s.mu.Lock()
		closing := s.isClosing() // while it was asked
		if !closing && s.side != 0 {
			_ = unix.Kill(-s.side, unix.SIGKILL)
		}
		s.mu.Unlock()
		if closing {
			next.close()
			continue
		}
		s.next = next
		return <-s.sideEnded, true
	}
}

// awaitStarts returns when the starts that are in progress are not any more. It returns an error
// where one hangs: the requests of a side cannot end before.
func (s *supervisor) awaitStarts() error {
	s.mu.Lock()
	made := s.pick(func(p *process) bool { return p.phase == starting })
	s.mu.Unlock()
	late := time.NewTimer(quietBound)
	defer late.Stop()
	for _, p := range made {
		select {
		case <-p.settled:
		case <-s.closing:
			return nil // which is looked at next
		case <-late.C:
			return fmt.Errorf("%s: its start did not end within %s; a file system or a disk may hang", p.Key, quietBound)
		}
	}
	return nil
}

// upgrade executes the next program. It returns if that is not possible. There is no side, and
// so there are no requests.
func (s *supervisor) upgrade() {
	defer func() {
		s.next.close()
		s.next = nil
	}()
	until := time.Now().Add(quietBound)
	thaw, err := s.freeze(until)
	if err != nil {
		s.refuse(err)
		return
	}
	err = s.handOver()
	thaw()
	if !errors.Is(err, ErrClosing) {
		s.refuse(err)
	}
}

// refuse tells that an upgrade was not possible.
func (s *supervisor) refuse(err error) {
	s.upgrades++
	s.log.Error("The host worker is not upgraded; it goes on as it is.", zap.Error(err))
	s.tellUpgrade(err)
}

// freeze stops everything that changes what the supervisor holds, but for the kernel, until thaw
// is called.
func (s *supervisor) freeze(until time.Time) (thaw func(), err error) {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	f := &freezer{late: ctx.Done()}
	if err := s.stopAndLock(f, until); err != nil {
		f.thaw()
		return nil, err
	}
	return f.thaw, nil
}

func (s *supervisor) stopAndLock(f *freezer, until time.Time) error {
	end := make(chan struct{})
	pause := func() { s.reaper.pauses <- end }
	if err := f.hold("the reaper", pause, func() { close(end) }); err != nil {
		return err
	}
	// Only the reaper begins any, as nothing is started.
	if err := f.hold("the record of an exit", func() { <-s.records.none() }, func() {}); err != nil {
		return err
	}
	if err := f.lock("the end of a run", &s.releases); err != nil {
		return err
	}
	if err := f.lock("a lease of ports", &s.leases); err != nil {
		return err
	}
	s.mu.Lock()
	runs := slices.Collect(maps.Values(s.runs))
	s.mu.Unlock()
	for _, r := range runs {
		for i := range r.output.copiers {
			if err := f.lock("a write of output", &r.output.copiers[i].mu); err != nil {
				return err
			}
		}
	}
	for _, r := range runs {
		for _, store := range r.ports.stores {
			f.undo = append(f.undo, store.server.Thaw)
			if err := store.server.Freeze(until); err != nil {
				return err
			}
		}
	}
	if err := f.lock("the start of the guard", &s.guard.starting); err != nil {
		return err
	}
	if err := f.lock("a request", &s.mu); err != nil {
		return err
	}
	for _, r := range runs {
		if err := f.hold("a journal", r.journal.settle, r.journal.mu.Unlock); err != nil {
			return err
		}
	}
	return nil
}

// freezer has what was stopped and locked so far, to be undone.
type freezer struct {
	late <-chan struct{}
	undo []func()
}

func (f *freezer) lock(what string, l sync.Locker) error { return f.hold(what, l.Lock, l.Unlock) }

// hold returns when take does, and has undo called by thaw. Where it gets late it returns an
// error, and undo is called once take returns.
func (f *freezer) hold(what string, take, undo func()) error {
	taken := make(chan struct{})
	go func() {
		take()
		close(taken)
	}()
	select {
	case <-taken:
		f.undo = append(f.undo, undo)
		return nil
	case <-f.late:
		go func() {
			<-taken
			undo()
		}()
		return fmt.Errorf("%s is in progress and does not end; a disk may hang", what)
	}
}

func (f *freezer) thaw() {
	for _, undo := range slices.Backward(f.undo) {
		undo()
	}
}

// settle locks the journal while no sync is in progress.
func (j *journal) settle() {
	for {
		j.mu.Lock()
		if !j.syncing {
			return
		}
		synced := make(chan error, 1)
		j.waiters = append(j.waiters, synced)
		j.mu.Unlock()
		<-synced
	}
}

// handOver writes the record, has the next program read it, and executes that. It returns only
// if one of that fails. The supervisor must be frozen.
func (s *supervisor) handOver() error {
	if s.isClosing() {
		return ErrClosing
	}
	h, err := s.describe(s.next.version)
	if err != nil {
		return err
	}
	h.Tries++
	if err := errors.Join(h.check(), h.open()); err != nil {
		return err
	}
	if err := s.next.read(h); err != nil {
		return err
	}
	files := append(h.files(), int(s.next.record.Fd()))
	defer func() {
		for _, fd := range files {
			unix.CloseOnExec(fd)
		}
	}()
	for _, fd := range files {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil { //nolint:gosec // a descriptor
			return fmt.Errorf("keeping the descriptor %d open: %w", fd, err)
		}
	}
	return s.fork.do(func() error {
		if mainThread != nil && unix.Gettid() != os.Getpid() {
			return errors.New("this is not the thread whose end the processes would follow")
		}
		ignored, listen := s.ignoreSignals()
		defer listen()
		env := append(os.Environ(), fmt.Sprintf("%s=%d %s", early.Handover, s.next.record.Fd(), ignored))
		select {
		case <-s.ending: // by a signal that came before
			return ErrClosing
		default:
		}
		err := syscall.Exec(s.next.path(), os.Args, env)
		return fmt.Errorf("executing %s: %s", s.cfg.Upgrade.Path, reasonOf(err))
	})
}

// ignoreSignals ignores the signals that ask for something until the next program listens, which they
// would end. Those that come meanwhile are lost. It returns what the next program must know of that.
func (s *supervisor) ignoreSignals() (ignored string, listen func()) {
	var were []string
	for _, sig := range s.ignored {
		were = append(were, strconv.Itoa(int(sig.(syscall.Signal)))) //nolint:forcetypeassert // all are, on Linux
	}
	signal.Ignore(append(slices.Clone(s.ignored), early.Asking...)...)
	return strings.Join(were, ","), func() {
		s.cfg.Upgrade.listen()
		if len(s.ignored) > 0 {
			signal.Notify(s.pipe, s.ignored...)
		}
	}
}

// ignoreAgain ignores the signals that were ignored when the first program was started.
func ignoreAgain(ignored string) {
	for n := range strings.SplitSeq(ignored, ",") {
		if n, err := strconv.Atoi(n); err == nil {
			signal.Ignore(syscall.Signal(n))
		}
	}
}

// Upgraded is what became of the last try of a supervisor to have another program take over.
type Upgraded struct {
	PID     int    `json:"pid"`
	Version string `json:"version"` // of the program that runs
	Living  int    `json:"processes"`
	Tries   int    `json:"tries"`
	Error   string `json:"error,omitempty"`
}

// tellUpgrade writes what became of the last try behind the first line of the lock, which takes no
// room on a full disk.
func (s *supervisor) tellUpgrade(err error) {
	s.mu.Lock()
	u := Upgraded{PID: os.Getpid(), Version: s.cfg.Upgrade.Version, Living: len(s.living), Tries: s.upgrades}
	s.mu.Unlock()
	if err != nil {
		u.Error = err.Error()
	}
	line, merr := json.Marshal(u)
	if merr != nil {
		return
	}
	text := holderLine(roleSupervisor) + string(line) + "\n"
	if info, err := s.state.lock.Stat(); err == nil {
		// It never gets shorter, so that nobody sees half of it.
		text += strings.Repeat(" ", max(0, int(info.Size())-len(text)))
	}
	_, _ = s.state.lock.WriteAt([]byte(text), 0)
}

// lastUpgrade returns what the supervisor of a state directory says; nil: nothing, since it cannot be upgraded.
func lastUpgrade(dir string) *Upgraded {
	raw, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		return nil
	}
	_, line, _ := strings.Cut(string(raw), "\n")
	u := new(Upgraded)
	if json.Unmarshal([]byte(strings.TrimSpace(line)), u) != nil || u.PID == 0 {
		return nil
	}
	return u
}

// Errors of [RequestUpgrade].
var (
	ErrNoSupervisor  = errors.New("no host worker uses the state directory")
	ErrNotUpgradable = errors.New("it cannot be upgraded in place")
)

// RequestUpgrade has the supervisor of a state directory execute the program on disk, and returns what
// came of it, and what ran before.
func RequestUpgrade(ctx context.Context, dir string) (before, after Upgraded, err error) {
	if LockFree(dir) {
		return before, after, ErrNoSupervisor
	}
	pid, _ := holder(dir)
	was := lastUpgrade(dir)
	if was == nil || was.PID != pid {
		return Upgraded{PID: pid}, after, ErrNotUpgradable
	}
	if err := unix.Kill(pid, SignalUpgrade); err != nil {
		return *was, after, fmt.Errorf("asking process %d: %w", pid, err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return *was, after, ctx.Err()
		}
		if u := lastUpgrade(dir); u != nil && u.Tries > was.Tries {
			return *was, *u, nil
		}
		if LockFree(dir) {
			return *was, after, ErrNoSupervisor
		}
	}
}

// RequestEnd has the supervisor of a state directory end, and returns once process pid does not hold
// that any more. It asks until then: a signal that comes while one program takes over from another
// may be lost.
func RequestEnd(ctx context.Context, dir string, pid int) error {
	for wait := (retry.Backoff{First: 5 * time.Millisecond, Most: 100 * time.Millisecond}); ; {
		if Holder(dir) != pid {
			return nil
		}
		if err := unix.Kill(pid, SignalEnd); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("asking process %d: %w", pid, err)
		}
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}
