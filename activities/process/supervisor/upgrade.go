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
	// Path is the program's file, and Version the running program's version.
	Path, Version string

	requests <-chan struct{} // one element per request, from [Config.ObeySignals]
}

// ErrOutdated is returned by [Run] if the side was upgraded to another version and the supervisor
// exits because no run is left.
var ErrOutdated = errors.New("the host worker was upgraded to another version, and exited because no run was open on this host; start it again unless a service manager does")

const (
	// handOverBound is how long the side may take to return its work to the server before it is
	// killed.
	handOverBound = 5 * time.Second
	// helloBound is how long a new program's side may take to report its version.
	helloBound = 10 * time.Second
)

// await returns when the side has exited. replaced reports whether another program is now the side.
func (s *sideKeeper) await() (status syscall.WaitStatus, replaced bool) {
	var requests <-chan struct{}
	if s.cfg.Upgrade != nil {
		requests = s.cfg.Upgrade.requests
	}
	late := time.NewTimer(helloBound)
	defer late.Stop()
	for {
		select {
		case status := <-s.ended:
			if s.trying {
				s.returnToFormer(fmt.Errorf("it exited (%s); see the host worker's log", describe(status)))
				return status, true
			}
			return status, false
		case <-late.C:
			if s.trying {
				s.signal(-1, unix.SIGKILL)
			}
		case s.version = <-s.hello:
			if s.trying {
				s.former.close()
				s.trying = false
				s.tries++
				s.tell(nil)
			}
			s.endIfOutdated()
		case <-s.emptied:
			s.endIfOutdated()
		case <-requests:
			if s.trying || s.table.isClosing() {
				continue
			}
			next, err := openProgram(s.cfg.Upgrade.Path)
			if err != nil {
				s.refuse(err)
				continue
			}
			s.former, s.program, s.trying = s.program, next, true
			return s.endForNext(), true
		}
	}
}

// endIfOutdated makes the supervisor exit if it does not have runs and its version differs from the
// side's.
func (s *sideKeeper) endIfOutdated() {
	if u := s.cfg.Upgrade; u != nil && s.version != u.Version && s.table.closeIfIdle() {
		close(s.outdated)
	}
}

// returnToFormer makes the former program the side's program again, because the new one does not
// work.
func (s *sideKeeper) returnToFormer(err error) {
	s.program.close()
	s.program, s.trying = s.former, false
	s.refuse(fmt.Errorf("%s: %w", s.cfg.Upgrade.Path, err))
}

// endForNext stops the side and returns its status. On SIGTERM the side returns its work to the
// server, so that the next side receives it immediately.
func (s *sideKeeper) endForNext() syscall.WaitStatus {
	late := time.NewTimer(handOverBound)
	defer late.Stop()
	s.signal(1, unix.SIGTERM) // not to the group, so that commands that the side started may finish
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

// refuse reports that an upgrade was not possible.
func (s *sideKeeper) refuse(err error) {
	s.tries++
	s.log.Error("The host worker was not upgraded and continues.", "error", err)
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

// tell records which programs run, after the lock file's first line. This also works if the disk is
// full.
func (s *sideKeeper) tell(err error) {
	if s.cfg.Upgrade == nil {
		return
	}
	s.table.mu.Lock()
	u := Upgraded{PID: os.Getpid(), Version: s.version, Supervisor: s.cfg.Upgrade.Version, Living: len(s.table.living), Tries: s.tries}
	s.table.mu.Unlock()
	if err != nil {
		u.Error = err.Error()
	}
	line, merr := json.Marshal(u)
	if merr != nil {
		return
	}
	text := holderLine(roleSupervisor) + string(line) + "\n"
	if info, err := s.table.state.lock.Stat(); err == nil {
		// The file never shrinks, so that a reader never sees half of it.
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

// told returns what tell last wrote. The supervisor that wrote it may have exited.
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
	ErrNoSupervisor  = errors.New("no host worker is using the state directory")
	ErrNotUpgradable = errors.New("it cannot be upgraded in place")
)

// RequestUpgrade makes a state directory's supervisor start the program on disk as its side, or
// exit if it is idle and of a different version. It returns the states before and after.
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
		return *was, after, fmt.Errorf("signaling process %d: %w", pid, err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return *was, after, ctx.Err()
		}
		ended := LockFree(dir) // checked before reading what it last wrote
		if u := told(dir); u != nil && u.PID == pid && u.Tries > was.Tries {
			return *was, *u, nil
		}
		if ended {
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
