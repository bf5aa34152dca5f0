package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
)

// This program's versions of the protocol between supervisor and side. A change that the other end
// must support needs a new version, because gob ignores fields that the receiver lacks. They are
// variables for the linker's -X.
var (
	protocolNewest = "1"
	protocolOldest = "1"
)

// program is another program for the side. The open file survives a replacement on disk.
type program struct {
	file    int
	version string
	alien   error // why it cannot be this supervisor's side, or nil
}

// keepProgram returns the program open as fd, at a number that new processes do not use.
func keepProgram(fd int) (*program, error) {
	file, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowestFD) //nolint:gosec // a descriptor
	return &program{file: file}, err
}

// path returns a path to execute the program. A nil p stands for this program.
func (p *program) path() string {
	if p == nil {
		return "/proc/self/exe"
	}
	return fmt.Sprintf("/proc/self/fd/%d", p.file)
}

// isOf reports whether the program is, or could be, the supervisor's. p may be nil.
func (p *program) isOf(u *Upgrade) bool {
	return p == nil || p.version == u.Version && p.alien == nil
}

// close closes the file. p may be nil.
func (p *program) close() {
	if p != nil {
		_ = unix.Close(p.file)
	}
}

const (
	// checkBound limits the wait for a program's answer.
	checkBound = 10 * time.Second
	// lowestFD keeps a descriptor away from those of new processes.
	lowestFD  = 10
	maxAnswer = 64 << 10
)

// answered is the line that [Answer] writes.
type answered struct {
	Program string `json:"clusterrun"` // its version
	Oldest  int    `json:"oldest"`     // of the protocol
	Newest  int    `json:"newest"`
	Error   string `json:"error,omitempty"`
}

// openProgram opens the program on disk and asks whether it understands the state directory and the
// side's options.
func (s *sideKeeper) openProgram() (_ *program, err error) {
	u := s.cfg.Upgrade
	// O_PATH, because the program may be executable but not readable.
	fd, err := unix.Open(u.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", u.Path, fault.Reason(err))
	}
	p, err := keepProgram(fd)
	_ = unix.Close(fd)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", u.Path, fault.Reason(err))
	}
	a, err := s.ask(p)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("%s: %w", u.Path, err)
	}
	p.version, p.alien = a.Program, a.alien(u.Version)
	return p, nil
}

// alien returns an error unless the program shares a protocol version with this one.
func (a answered) alien(own string) error {
	oldest, newest := versionNumber(protocolOldest), versionNumber(protocolNewest)
	switch {
	case a.Newest < oldest:
		return fmt.Errorf("clusterrun %s speaks the protocol of the supervisor up to version %d, and the supervisor, which is clusterrun %s, from version %d on; try again when no run is open here", a.Program, a.Newest, own, oldest)
	case a.Oldest > newest:
		return fmt.Errorf("clusterrun %s speaks the protocol of the supervisor from version %d on, and the supervisor, which is clusterrun %s, up to version %d; try again when no run is open here", a.Program, a.Oldest, own, newest)
	}
	return nil
}

func versionNumber(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// ask executes a program with the check's arguments, and returns its answer.
func (s *sideKeeper) ask(p *program) (a answered, err error) {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return a, fmt.Errorf("opening %s: %s", os.DevNull, fault.Reason(err))
	}
	defer unix.Close(null)
	r, w, err := output.NewPipe()
	if err != nil {
		return a, fmt.Errorf("a pipe: %s", fault.Reason(err))
	}
	told := os.NewFile(uintptr(r), "answer") //nolint:gosec // a descriptor
	defer told.Close()
	attr := &syscall.ProcAttr{
		Env:   append(os.Environ(), s.cfg.SideEnv...),
		Files: []uintptr{uintptr(null), uintptr(w), uintptr(w)}, //nolint:gosec // descriptors
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	pidfd := -1
	err = s.fork.Start(p.path(), append([]string{s.cfg.Upgrade.Path}, s.cfg.Upgrade.Check...), attr, func(pid int) {
		pidfd, _ = unix.PidfdOpen(pid, 0)
	})
	_ = unix.Close(w) // so that its exit is seen
	if err != nil {
		return a, fmt.Errorf("it cannot be executed: %s", fault.Reason(err))
	}
	defer killAndReap(pidfd)
	_ = told.SetReadDeadline(time.Now().Add(checkBound))
	line, err := bufio.NewReader(io.LimitReader(told, maxAnswer)).ReadString('\n')
	if json.Unmarshal([]byte(line), &a) == nil && a.Program != "" {
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return a, fmt.Errorf("it does not answer within %s", checkBound)
	}
	if line = strings.TrimSpace(line); line != "" {
		return a, fmt.Errorf("it is not a program for a host worker; it says: %s", line)
	}
	return a, errors.New("it is not a program for a host worker: it has ended without an answer")
}

// killAndReap kills a child and reaps it, unless the reaper does. It closes the descriptor.
func killAndReap(pidfd int) {
	if pidfd < 0 {
		return
	}
	_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) // it may have exited
	go func() {
		defer unix.Close(pidfd)
		err := error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			err = unix.Waitid(unix.P_PIDFD, pidfd, nil, unix.WEXITED, nil)
		}
	}()
}

// Answer proves that a program can be a host worker's side. The program calls it when run with the
// arguments in [Upgrade.Check] and a side's environment. check reports why it cannot.
func Answer(version string, check func() error, out io.Writer) error {
	a := answered{Program: version, Oldest: versionNumber(protocolOldest), Newest: versionNumber(protocolNewest)}
	if err := check(); err != nil {
		a.Error = err.Error()
	}
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}
