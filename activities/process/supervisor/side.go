package supervisor

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	sideBackoffFirst = 100 * time.Millisecond
	sideBackoffMost  = 5 * time.Second
	// sideSettled is how long a side must live for the backoff to start again.
	sideSettled = 5 * time.Second
	// sideFarewell is how long a side may take at the end to report to the server, and
	// sideGrace its grace after SIGTERM.
	sideFarewell = 3 * time.Second
	sideGrace    = 2 * time.Second
)

// keepSide starts the side, and again whenever it ends, until the supervisor is closing. If
// the owner has a side in its process, keepSide starts one only after that has ended. It
// sends the outcome of the first start to started.
func (s *supervisor) keepSide(started chan<- error, stop <-chan struct{}) {
	if s.cfg.OwnersSide != nil {
		link, err := s.linkOwnersSide()
		started <- err
		if err != nil {
			return
		}
		started = nil
		<-link.served
		link.close()
		if s.ownersSideLeft() {
			return
		}
		s.log.Warn("The side in the owner's process has ended; one is started here. Processes are not touched.")
	}
	pause := time.Duration(0)
	for {
		begun := time.Now()
		link, err := s.startSide()
		if started != nil {
			if started <- err; err != nil {
				return
			}
			started = nil
		}
		if s.cfg.Upgrade != nil && err == nil {
			s.tellUpgrade(nil)
		}
		if err != nil {
			s.log.Error("The Temporal-facing side cannot be started."+LimitOf(err), zap.Error(err))
		} else {
			status, killed := s.awaitSide()
			link.close()
			if s.isClosing() {
				return
			}
			if killed {
				if s.adopt() {
					close(s.replaced)
					return
				}
				pause = 0
				continue
			}
			s.log.Warn("The Temporal-facing side has ended; it is started again. Processes are not touched.",
				zap.String("status", describe(status)), zap.Duration("lived", time.Since(begun)))
		}
		if time.Since(begun) > sideSettled {
			pause = 0
		}
		if pause > 0 {
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
		if s.isClosing() {
			return
		}
		pause = min(max(2*pause, sideBackoffFirst), sideBackoffMost)
	}
}

// linkOwnersSide starts to answer the side in the owner's process.
func (s *supervisor) linkOwnersSide() (*sideLink, error) {
	conn, err := net.FileConn(s.cfg.OwnersSide)
	_ = s.cfg.OwnersSide.Close()
	if err != nil {
		return nil, fmt.Errorf("the socket to the owner's side: %w", err)
	}
	link := s.serveSide(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ownersSide = link
	return link, nil
}

// ownersSideLeft reports whether the side in the owner's process, which has ended, has
// nothing left to report. Otherwise its owner was killed, and a side is started to report.
func (s *supervisor) ownersSideLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	link := s.ownersSide
	s.ownersSide = nil
	return link.left || s.recorded
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + unix.SignalName(status.Signal())
	}
	return "exit code " + strconv.Itoa(status.ExitStatus())
}

// sideLink is the supervisor's end of the socket to a side.
type sideLink struct {
	conn   net.Conn
	served chan struct{}
	left   bool // the side has nothing more to report; guarded by the supervisor's mu
}

// close returns when no request of the side is in progress. It does not rely on the other
// end, which a child of the side might still hold open.
func (l *sideLink) close() {
	_ = l.conn.Close()
	<-l.served
}

// startSide starts the side with one end of a new socket.
func (s *supervisor) startSide() (link *sideLink, err error) {
	argv := s.cfg.Side
	if len(argv) == 0 {
		argv = os.Args
	}
	conn, theirs, err := SocketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	env := append(os.Environ(), s.cfg.SideEnv...)
	env = lastOfEach(append(withCookie(env, sideCookie(s.state.instance), s.outer),
		envFD+"=3",
		envState+"="+s.state.dir,
		envInstance+"="+s.state.instance,
		envVersion+"="+s.version(),
	))
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{uintptr(null), 1, 2, theirs.Fd()},
		// It has its own group: Ctrl-C is for the supervisor, which tells the side. It
		// gets no parent-death signal: it must sweep when the supervisor is killed.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	// It is the same program, even if its file was replaced, until an upgrade is requested: the
	// two must understand each other.
	err = s.fork.fork(s.program.path(), argv, attr, func(pid int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.side = pid
	})
	_ = unix.Close(null)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("starting the Temporal-facing side %s: %w", argv[0], err)
	}
	link = s.serveSide(conn)
	s.reaper.wake() // the side may have ended before it was in the table
	return link, nil
}

// version returns the version of the supervisor's program; "" if it cannot be upgraded.
func (s *supervisor) version() string {
	if s.cfg.Upgrade == nil {
		return ""
	}
	return s.cfg.Upgrade.Version
}

// SocketPair returns the two ends of a connection between a supervisor and a side: one for this
// process, and one for another.
func SocketPair() (ours net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "ours")
	theirs = os.NewFile(uintptr(fds[1]), "theirs")
	ours, err = net.FileConn(mine) // FileConn has its own descriptor
	_ = mine.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return ours, theirs, nil
}

// serveSide answers a side over a connection.
func (s *supervisor) serveSide(conn net.Conn) *sideLink {
	link := &sideLink{conn: conn, served: make(chan struct{})}
	go func() {
		defer close(link.served)
		serve(conn, s)
	}()
	return link
}

// lastOfEach keeps the last value of each variable: programs take the first of several.
func lastOfEach(env []string) []string {
	at := make(map[string]int, len(env))
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		at[name] = i
	}
	out := make([]string, 0, len(at))
	for i, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); at[name] == i {
			out = append(out, kv)
		}
	}
	return out
}

// endSide lets the side finish, then sends SIGTERM, then SIGKILL; SIGKILL at once if what the
// side would report is recorded. A side in the owner's process is only disconnected.
func (s *supervisor) endSide(gone <-chan struct{}) {
	steps := []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{0, sideFarewell}, {unix.SIGTERM, sideGrace}, {unix.SIGKILL, s.cfg.KillBound}}
	if s.recorded { // no longer written by anybody
		steps = steps[2:]
	}
	for _, step := range steps {
		s.mu.Lock()
		switch {
		case step.sig == 0:
		case s.side != 0:
			_ = unix.Kill(-s.side, step.sig)
		case s.ownersSide != nil:
			_ = s.ownersSide.conn.Close()
		}
		s.mu.Unlock()
		timer := time.NewTimer(step.wait)
		select {
		case <-gone:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	s.log.Error("The Temporal-facing side cannot be killed.")
}
