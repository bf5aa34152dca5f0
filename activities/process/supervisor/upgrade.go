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

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// Upgrade configures how the program on disk replaces the side while processes run.
type Upgrade struct {
	// Path is the program's file. Check is the arguments, without its name, that make it call
	// [Answer].
	Path  string
	Check []string
	// Version is the running program's version.
	Version string

	requests <-chan struct{} // one element per request, from [Config.ObeySignals]
}

// ErrOutdated is returned by [Run] if the side was upgraded to another version and the supervisor
// exits because no run is left.
var ErrOutdated = errors.New("the host worker was upgraded to another version, and has ended since no run was open on this host; start it again, unless a service manager does")

const (
	// quietBound limits the wait for starts in progress before an upgrade is refused.
	quietBound = 5 * time.Second
	// handOverBound is how long the side may return its work to the server before it is killed.
	handOverBound = 5 * time.Second
)

// await returns when the side has exited. upgraded reports whether it exited for an upgrade.
func (s *sideKeeper) await() (status syscall.WaitStatus, upgraded bool) {
	var requests <-chan struct{}
	if s.cfg.Upgrade != nil {
		requests = s.cfg.Upgrade.requests
	}
	for {
		select {
		case status := <-s.ended:
			return status, false
		case <-s.emptied:
			if s.cfg.Upgrade == nil || s.program.isOf(s.cfg.Upgrade) || !s.table.closeIfIdle() {
				continue
			}
			close(s.outdated)
		case <-requests:
			if s.table.isClosing() {
				continue
			}
			next, err := s.openProgram()
			if err == nil && !next.isOf(s.cfg.Upgrade) && s.table.closeIfIdle() {
				s.adopt(next)
				s.tell(nil)
				close(s.outdated)
				continue
			}
			if err == nil {
				err = s.suits(next)
			}
			if err != nil {
				next.close()
				s.refuse(err)
				continue
			}
			s.adopt(next)
			return s.endForNext(), true
		}
	}
}

// suits reports why a program cannot become the side now.
func (s *sideKeeper) suits(p *program) error {
	if p.alien != nil {
		return p.alien
	}
	return s.awaitStarts()
}

// adopt makes a program the program of the next side.
func (s *sideKeeper) adopt(next *program) {
	s.program.close()
	s.program = next
	s.upgrades++
}

// endForNext stops the side and returns its status. On SIGTERM the side returns its work to the
// server, so that the next side gets it immediately.
func (s *sideKeeper) endForNext() syscall.WaitStatus {
	late := time.NewTimer(handOverBound)
	defer late.Stop()
	s.signal(1, unix.SIGTERM) // commands that the side started may finish
	select {
	case status := <-s.ended:
		return status
	case <-late.C:
	}
	s.signal(-1, unix.SIGKILL)
	return <-s.ended
}

// signal sends a signal to the side unless it has exited, or to its process group if sign is -1.
func (s *sideKeeper) signal(sign int, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid != 0 {
		_ = unix.Kill(sign*s.pid, sig)
	}
}

// awaitStarts waits for the starts in progress. It returns an error if one hangs, because the
// side's requests wait for it.
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

// refuse reports that an upgrade was not possible.
func (s *sideKeeper) refuse(err error) {
	s.upgrades++
	s.log.Error("The host worker is not upgraded and continues.", "error", err)
	s.tell(err)
}

// Upgraded is the outcome of the last request for an upgrade.
type Upgraded struct {
	PID int `json:"pid"`
	// Version is the side's version, and Supervisor the supervisor's.
	Version    string `json:"version"`
	Supervisor string `json:"supervisor"`
	Living     int    `json:"processes"`
	Tries      int    `json:"tries"`
	Error      string `json:"error,omitempty"`
}

// tell records which programs run, after the lock file's first line. This works on a full disk.
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
		// It never shrinks, so that a reader never sees half of it.
		text += strings.Repeat(" ", max(0, int(info.Size())-len(text)))
	}
	_, _ = s.table.state.lock.WriteAt([]byte(text), 0)
}

// Programs returns which programs run as a state directory's supervisor and side, or nil if they
// cannot be upgraded.
func Programs(dir string) *Upgraded {
	if u := told(dir); u != nil && u.PID == Holder(dir) {
		return u
	}
	return nil
}

// told returns what tell last wrote. The writer may have exited.
func told(dir string) *Upgraded {
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

// RequestUpgrade makes a state directory's supervisor start the program on disk as its side, or
// exit if it is idle and has another version. It returns the states before and after.
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
		if u := told(dir); u != nil && u.PID == pid && u.Tries > was.Tries {
			return *was, *u, nil
		}
		if LockFree(dir) {
			return *was, after, ErrNoSupervisor
		}
	}
}

// RequestEnd makes a state directory's supervisor exit, and returns once process pid no longer
// holds the directory. It repeats the request until then, because a signal that arrives while the
// supervisor starts may be lost.
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
