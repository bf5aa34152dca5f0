package supervisor

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

const (
	sideBackoffFirst = 100 * time.Millisecond
	sideBackoffMost  = 5 * time.Second
	// sideSettled is how long a side must live to reset the backoff.
	sideSettled = 5 * time.Second
	// sideFarewell limits a side's final reports to the server. sideGrace is its grace after
	// SIGTERM.
	sideFarewell = 3 * time.Second
	sideGrace    = 2 * time.Second
	// ownersFarewell replaces sideFarewell for a side that replaces one in another process which
	// was killed together with the owner.
	ownersFarewell = 30 * time.Second
	// A side in another process is killed if stoppedLooks looks in a row find it stopped.
	stoppedLook  = time.Second
	stoppedLooks = 5
)

// sideKeeper keeps a side running. Except for hello, program and the fields after it are used only
// by the goroutine of keep.
type sideKeeper struct {
	cfg   Config
	log   *slog.Logger
	table *table
	fork  *fork.Forker
	wake  func() // the reaper
	outer string // cookies of a supervisor that runs us as a task
	api   API    // serves the side's requests

	mu  sync.Mutex
	pid int // of the side, until reaped
	// owners is the link to a side in another process, until that exits.
	owners   *sideLink
	recorded bool // whether the server already knows what the side would report at the end

	// ended receives an exited side's status.
	ended chan syscall.WaitStatus
	// emptied receives an element when a run is released. outdated is closed when the supervisor
	// exits because its version differs from that of program.
	emptied  chan struct{}
	outdated chan struct{}

	// program is the side's program, and version the version that the last side has reported with
	// hello. While a new program is tried, the keeper can return to former.
	program, former program
	trying          bool
	version         string
	hello           chan string
	tries           int // the number of finished requests for an upgrade
}

func newSideKeeper(cfg Config, t *table) *sideKeeper {
	s := &sideKeeper{
		cfg: cfg, log: cfg.Log, table: t,
		ended: make(chan syscall.WaitStatus, 1), emptied: make(chan struct{}, 1), outdated: make(chan struct{}), hello: make(chan string, 1),
	}
	s.version = s.ownVersion()
	return s
}

// keep starts the side, and restarts it whenever it exits, until the supervisor is closing. If a
// side runs in another process, keep first waits for that process to exit. It sends the outcome of
// the first start to started.
func (s *sideKeeper) keep(started chan<- error, stop <-chan struct{}) {
	if s.cfg.Program != nil {
		p, err := keepProgram(s.cfg.Program)
		if err != nil {
			started <- fmt.Errorf("the program of the side: %w", err)
			return
		}
		s.program = p
	}
	if s.cfg.OwnersSide != nil {
		link, err := s.linkOwners()
		started <- err
		if err != nil {
			return
		}
		started = nil
		s.awaitOwners(link)
		link.close()
		if s.ownersLeft() {
			return
		}
		s.log.Warn("The home's host worker has exited; the supervisor is starting a Temporal client. Tasks are not affected.")
	}
	pause := time.Duration(0)
	for {
		begun := time.Now()
		link, err := s.start()
		if started != nil {
			if started <- err; err != nil {
				return
			}
			started = nil
		}
		if s.tries == 0 { // later, the outcome of the last request is kept
			s.tell(nil)
		}
		if err != nil && s.trying {
			s.returnToFormer(err)
			continue
		}
		if err != nil {
			s.log.Error("Could not start the host worker's Temporal client."+fault.LimitOf(err), "error", err)
		} else {
			status, replaced := s.await()
			link.close()
			if s.table.isClosing() {
				return
			}
			if replaced {
				pause = 0
				continue
			}
			s.log.Warn("The host worker's Temporal client has exited; restarting it. Tasks are not affected.",
				"status", describe(status), "lived", time.Since(begun))
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
		if s.table.isClosing() {
			return
		}
		pause = min(max(2*pause, sideBackoffFirst), sideBackoffMost)
	}
}

// linkOwners starts serving the side in another process.
func (s *sideKeeper) linkOwners() (*sideLink, error) {
	conn, err := net.FileConn(s.cfg.OwnersSide)
	_ = s.cfg.OwnersSide.Close()
	if err != nil {
		return nil, fmt.Errorf("the socket to the launcher: %w", err)
	}
	link := s.serve(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners = link
	return link, nil
}

// awaitOwners waits until the side in another process has exited. While that is stopped by a
// signal, nothing reports this supervisor's exits, so a side that stays stopped is killed.
func (s *sideKeeper) awaitOwners(link *sideLink) {
	look := time.NewTicker(stoppedLook)
	defer look.Stop()
	for stopped := 0; ; {
		select {
		case <-link.served:
			return
		case <-look.C:
		}
		stat, err := proc.ReadStat(s.cfg.OwnersSidePID)
		if err != nil || stat.State != 'T' {
			stopped = 0
			continue
		}
		if stopped++; stopped == stoppedLooks {
			s.log.Warn("The home's host worker is stopped by a signal; killing it.", "pid", s.cfg.OwnersSidePID)
			_ = unix.Kill(s.cfg.OwnersSidePID, unix.SIGKILL)
		}
	}
}

// ownersLeft reports whether the side in another process, which has exited, had nothing left to
// report. If not, that process was killed, and a new side must report.
func (s *sideKeeper) ownersLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	link := s.owners
	s.owners = nil
	return link.left || s.recorded
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + unix.SignalName(status.Signal())
	}
	return "exit code " + strconv.Itoa(status.ExitStatus())
}

// sideLink is the supervisor's end of a socket to a side.
type sideLink struct {
	conn   net.Conn
	served chan struct{}
	left   bool // the side has nothing more to report; guarded by the keeper's mu
}

// close returns when none of the side's requests is in progress. It does not wait for the other end
// to close, because a child of the side may hold it open.
func (l *sideLink) close() {
	_ = l.conn.Close()
	<-l.served
}

// start starts the side with one end of a new socket.
func (s *sideKeeper) start() (link *sideLink, err error) {
	select {
	case <-s.hello: // of an earlier side
	default:
	}
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
	defer unix.Close(null)
	// The fork uses the descriptor after the highest one that it passes on, and this must not be
	// the program's.
	passed, err := unix.FcntlInt(theirs.Fd(), unix.F_DUPFD_CLOEXEC, int(s.program)+1)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("passing on the socket: %w", err)
	}
	defer unix.Close(passed)
	env := append(os.Environ(), s.cfg.SideEnv...)
	env = lastOfEach(append(withCookie(env, sideCookie(s.table.state.instance), s.outer),
		envFD+"=3",
		envState+"="+s.table.state.dir,
		envInstance+"="+s.table.state.instance,
		envVersion+"="+s.ownVersion(),
	))
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{uintptr(null), 1, 2, uintptr(passed)},
		// Its own group keeps Ctrl-C for the supervisor, which notifies it. Without a parent-death
		// signal it can sweep when the supervisor is killed.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	err = s.fork.Start(s.program.path(), argv, attr, func(pid int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pid = pid
	})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("starting the Temporal client %s: %w", argv[0], err)
	}
	link = s.serve(conn)
	s.wake() // the side may have exited before pid was set
	return link, nil
}

// ownVersion returns the supervisor program's version, or "" if the program cannot be upgraded.
func (s *sideKeeper) ownVersion() string {
	if s.cfg.Upgrade == nil {
		return ""
	}
	return s.cfg.Upgrade.Version
}

// SocketPair returns a connection between a supervisor and a side: one end for this process, the
// other for another.
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

// serve serves a side over conn.
func (s *sideKeeper) serve(conn net.Conn) *sideLink {
	link := &sideLink{conn: conn, served: make(chan struct{})}
	go func() {
		defer close(link.served)
		serve(conn, s.api)
	}()
	return link
}

// lastOfEach keeps the last value of each variable. If there were several, programs would use the
// first.
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

// end lets the side finish, then sends SIGTERM, and finally SIGKILL. If the side's report is
// already recorded, it sends SIGKILL immediately. A side in another process is only disconnected.
func (s *sideKeeper) end(gone <-chan struct{}) {
	farewell := sideFarewell
	if s.cfg.OwnersSide != nil {
		farewell = ownersFarewell
	}
	steps := []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{0, farewell}, {unix.SIGTERM, sideGrace}, {unix.SIGKILL, s.cfg.KillBound}}
	if s.recorded { // no longer changes
		steps = steps[2:]
	}
	for _, step := range steps {
		s.mu.Lock()
		switch {
		case step.sig == 0:
		case s.pid != 0:
			_ = unix.Kill(-s.pid, step.sig)
		case s.owners != nil:
			_ = s.owners.conn.Close()
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
	s.log.Error("Could not kill the host worker's Temporal client.")
}

// reap reaps the side if it has exited.
func (s *sideKeeper) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid == 0 || !zombie(s.pid) {
		return
	}
	var status syscall.WaitStatus
	if pid, _ := syscall.Wait4(s.pid, &status, syscall.WNOHANG, nil); pid == s.pid {
		s.pid = 0
		s.ended <- status
	}
}

// leave records that the side in another process has finished reporting.
func (s *sideKeeper) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners != nil {
		s.owners.left = true
	}
}

// record records whether the server already has the side's final report.
func (s *sideKeeper) record(recorded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = recorded
}

// current returns the side's pid, or 0.
func (s *sideKeeper) current() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}
