package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// Upgrade configures how the program on disk replaces the side while processes run, and the
// supervisor too as soon as it has no run.
type Upgrade struct {
	// Path is the file of the program, and Check its arguments, without its name, with which it
	// calls [Answer].
	Path  string
	Check []string
	// Version is the version of the running program.
	Version string

	requests <-chan struct{} // by [Config.ObeySignals]: an element for each request
}

// ErrReplaced is returned by [Run] if the supervisor has ended so that its program can be
// replaced: the caller calls [State.Execute].
var ErrReplaced = errors.New("the supervisor ends, and another program is executed in its place")

const (
	// quietBound is the longest time to wait for starts in progress before an upgrade is
	// refused.
	quietBound = 5 * time.Second
	// sideReports is the time that the side has to report a released run before it is killed
	// because the supervisor is replaced.
	sideReports = time.Second
)

// await returns when the Temporal client has exited. killed reports whether it was killed for an upgrade;
// see adopt.
func (s *sideKeeper) await() (status syscall.WaitStatus, killed bool) {
	var requests <-chan struct{}
	if s.cfg.Upgrade != nil {
		requests = s.cfg.Upgrade.requests
	}
	var reported <-chan time.Time
	for {
		select {
		case status := <-s.ended:
			return status, false
		case <-requests:
			if s.table.isClosing() {
				continue
			}
			next, err := s.openProgram()
			if err == nil {
				err = s.suits(next)
			}
			if err != nil {
				next.close()
				s.refuse(err)
				continue
			}
			s.next = next
		case <-s.emptied:
			if s.program != nil {
				reported = time.After(sideReports)
			}
			continue
		case <-reported:
			if !s.isIdle() {
				continue
			}
		}
		s.mu.Lock()
		if s.pid != 0 {
			_ = unix.Kill(-s.pid, unix.SIGKILL)
		}
		s.mu.Unlock()
		return <-s.ended, true
	}
}

// suits reports why a program cannot become the side now.
func (s *sideKeeper) suits(p *program) error {
	if p.alien != nil && !s.isIdle() {
		return p.alien
	}
	return s.awaitStarts()
}

// awaitStarts returns when the starts that are in progress have ended. It returns an error if one
// hangs: the requests of a side cannot end before.
func (s *sideKeeper) awaitStarts() error {
	s.table.mu.Lock()
	made := s.table.pick(func(p *process) bool { return p.phase == starting })
	s.table.mu.Unlock()
	late := time.NewTimer(quietBound)
	defer late.Stop()
	for _, p := range made {
		select {
		case <-p.settled:
		case <-late.C:
			return fmt.Errorf("%s: its start did not end within %s; a file system or a disk may hang", p.Key, quietBound)
		}
	}
	return nil
}

// adopt makes the requested program the program of the next side. It reports whether the
// supervisor is idle and must be replaced as well. It must be called while there is no side,
// and so no requests.
func (s *sideKeeper) adopt() (over bool) {
	over = s.isIdle()
	next := s.next
	s.next = nil
	switch {
	case next == nil:
	case next.alien != nil && !over: // a run has come since the check
		next.close()
		s.refuse(next.alien)
	default:
		s.program.close()
		s.program = next
		s.upgrades++
	}
	return over
}

// isIdle reports whether the supervisor holds no run that is not released, and so no process
// and no port.
func (s *sideKeeper) isIdle() bool {
	return s.table.isEmpty() && !s.table.isClosing()
}

// refuse tells that an upgrade was not possible.
func (s *sideKeeper) refuse(err error) {
	s.upgrades++
	s.log.Error("The host worker is not upgraded and continues.", zap.Error(err))
	s.tell(err)
}

// Upgraded is the outcome of the last request for an upgrade.
type Upgraded struct {
	PID int `json:"pid"`
	// Version is the version of the side, and Supervisor the version of the supervisor.
	Version    string `json:"version"`
	Supervisor string `json:"supervisor"`
	Living     int    `json:"processes"`
	Tries      int    `json:"tries"`
	Error      string `json:"error,omitempty"`
}

// tell writes which programs run behind the first line of the lock, which takes no room on
// a full disk.
func (s *sideKeeper) tell(err error) {
	s.table.mu.Lock()
	u := Upgraded{PID: os.Getpid(), Version: s.cfg.Upgrade.Version, Supervisor: s.cfg.Upgrade.Version, Living: len(s.table.living), Tries: s.upgrades}
	s.table.mu.Unlock()
	if s.program != nil {
		u.Version = s.program.version
	}
	if err != nil {
		u.Error = err.Error()
	}
	line, merr := json.Marshal(u)
	if merr != nil {
		return
	}
	text := holderLine(roleSupervisor) + string(line) + "\n"
	if info, err := s.table.state.lock.Stat(); err == nil {
		// It never gets shorter, so that a reader never sees half of it.
		text += strings.Repeat(" ", max(0, int(info.Size())-len(text)))
	}
	_, _ = s.table.state.lock.WriteAt([]byte(text), 0)
}

// Programs returns which programs run as the supervisor and the side of a state directory; nil if
// none can be upgraded.
func Programs(dir string) *Upgraded {
	raw, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		return nil
	}
	_, line, _ := strings.Cut(string(raw), "\n")
	u := new(Upgraded)
	if json.Unmarshal([]byte(strings.TrimSpace(line)), u) != nil || u.PID == 0 || u.PID != Holder(dir) {
		return nil
	}
	return u
}

// Errors of [RequestUpgrade].
var (
	ErrNoSupervisor  = errors.New("no host worker uses the state directory")
	ErrNotUpgradable = errors.New("it cannot be upgraded in place")
)

// RequestUpgrade makes the supervisor of a state directory start the program on disk as its side.
// It returns the states before and after.
func RequestUpgrade(ctx context.Context, dir string) (before, after Upgraded, err error) {
	pid := Holder(dir)
	if pid == 0 {
		return before, after, ErrNoSupervisor
	}
	was := Programs(dir)
	if was == nil {
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
		if u := Programs(dir); u != nil && u.Tries > was.Tries {
			return *was, *u, nil
		}
		if LockFree(dir) {
			return *was, after, ErrNoSupervisor
		}
	}
}

// RequestEnd makes the supervisor of a state directory end, and returns once process pid no longer
// holds that. It repeats the request until then: a signal that comes while the supervisor is
// replaced may be lost.
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
