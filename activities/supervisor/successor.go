package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// successor is a program that is to take over, and a process of it that reads the record
// before the program is executed in ours. While that process lives, the program's file cannot
// be changed.
type successor struct {
	file    int // the program
	record  *os.File
	version int // of the record
	pidfd   int
	ask     *os.File
	told    *os.File
	answers *bufio.Reader
}

// answered is one line of [Answer].
type answered struct {
	Handover string `json:"clusterrun_handover"` // the version of the program
	Reads    int    `json:"reads"`
	Held     held   `json:"held,omitzero"`
	Error    string `json:"error,omitempty"`
}

// lowestFD keeps descriptors away from those that a new process gets.
const lowestFD = 10

// recordFD is the descriptor of the record in the checking process.
const recordFD = 3

// callSuccessor opens the program on disk, and asks it which records it reads.
func (s *supervisor) callSuccessor() (_ *successor, err error) {
	u := s.cfg.Upgrade
	n := &successor{file: -1, pidfd: -1}
	defer func() {
		if err != nil {
			n.close()
			err = fmt.Errorf("%s: %w", u.Path, err)
		}
	}()
	// O_PATH, because the program may be executable but not readable.
	fd, err := unix.Open(u.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.New(reasonOf(err))
	}
	n.file, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowestFD) //nolint:gosec // a descriptor
	_ = unix.Close(fd)
	if err != nil {
		return nil, errors.New(reasonOf(err))
	}
	memory, err := unix.MemfdCreate("clusterrun handover", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for what is handed over: %s", reasonOf(err))
	}
	n.record = os.NewFile(uintptr(memory), "handover") //nolint:gosec // a descriptor
	if err := n.start(s.fork, append([]string{os.Args[0]}, u.Check...)); err != nil {
		return nil, err
	}
	a, err := n.answer()
	if err != nil {
		return nil, err
	}
	n.version = min(versionOf(handoverVersion), a.Reads)
	if oldest := versionOf(handoverOldest); n.version < oldest {
		return nil, fmt.Errorf("clusterrun %s reads records of what is handed over up to version %d, and clusterrun %s writes them from version %d on", a.Handover, a.Reads, u.Version, oldest)
	}
	return n, nil
}

// path returns a path to the program that was checked, even if the file on disk has been
// replaced.
func (n *successor) path() string { return fmt.Sprintf("/proc/self/fd/%d", n.file) }

func (n *successor) start(f *forker, argv []string) error {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("a pipe: %s", reasonOf(err))
	}
	n.ask = os.NewFile(uintptr(in[1]), "ask") //nolint:gosec // a descriptor
	defer unix.Close(in[0])
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("a pipe: %s", reasonOf(err))
	}
	defer unix.Close(out[1])
	_ = unix.SetNonblock(out[0], true)
	n.told = os.NewFile(uintptr(out[0]), "told") //nolint:gosec // a descriptor
	n.answers = bufio.NewReader(n.told)
	attr := &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{uintptr(in[0]), uintptr(out[1]), uintptr(out[1]), n.record.Fd()}, //nolint:gosec // descriptors
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	err := f.fork(n.path(), argv, attr, func(pid int) {
		n.pidfd, _ = unix.PidfdOpen(pid, 0)
	})
	if err != nil {
		return fmt.Errorf("it cannot be executed: %s", reasonOf(err))
	}
	return nil
}

// answer reads the next answer of the process.
func (n *successor) answer() (answered, error) {
	var a answered
	_ = n.told.SetReadDeadline(time.Now().Add(checkBound))
	line, err := n.answers.ReadString('\n')
	if json.Unmarshal([]byte(line), &a) == nil && a.Handover != "" {
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return a, fmt.Errorf("it does not answer within %s", checkBound)
	}
	if line = strings.TrimSpace(line); line != "" {
		return a, fmt.Errorf("it does not know how to take over; it says: %s", line)
	}
	return a, errors.New("it does not know how to take over: it has ended without an answer")
}

// read writes the record and makes the process read it. The process must find in it what we
// hold.
func (n *successor) read(h *handover) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encoding what is handed over: %w", err)
	}
	mine, err := decodeHandover(raw)
	if err != nil {
		return err
	}
	again, err := json.Marshal(mine)
	if err != nil || !bytes.Equal(raw, again) {
		return errors.New("what is handed over does not read as it was written")
	}
	if err := n.record.Truncate(0); err != nil {
		return fmt.Errorf("writing what is handed over: %w", err)
	}
	if _, err := n.record.WriteAt(raw, 0); err != nil {
		return fmt.Errorf("writing what is handed over: %w", err)
	}
	if _, err := n.ask.WriteString("read\n"); err != nil {
		return fmt.Errorf("the program that is to take over has ended: %w", err)
	}
	a, err := n.answer()
	if err != nil {
		return err
	}
	if a.Held != h.held() {
		return fmt.Errorf("clusterrun %s finds %+v in what is handed over, but it has %+v", a.Handover, a.Held, h.held())
	}
	return nil
}

// close kills the process, reaps it unless the reaper does, and closes the program.
func (n *successor) close() {
	for _, f := range []*os.File{n.ask, n.told, n.record} {
		if f != nil {
			_ = f.Close()
		}
	}
	if n.file >= 0 {
		_ = unix.Close(n.file)
	}
	if n.pidfd < 0 {
		return
	}
	_ = unix.PidfdSendSignal(n.pidfd, unix.SIGKILL, nil, 0) // it may have ended
	go func() {
		defer unix.Close(n.pidfd)
		err := error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			err = unix.Waitid(unix.P_PIDFD, n.pidfd, nil, unix.WEXITED, nil)
		}
	}()
}

// Answer is how a program that is to take over shows that it can. It is called with the
// arguments in [Upgrade.Check], and answers until the supervisor has no more questions. check
// is called with the message of the previous program ([Upgrade.Program]).
func Answer(version string, check func(json.RawMessage) error, in io.Reader, out io.Writer) error {
	record := os.NewFile(recordFD, "handover")
	if record == nil {
		return errors.New("this command is started by a supervisor, not by hand")
	}
	say := func(a answered) error {
		a.Handover, a.Reads = version, versionOf(handoverVersion)
		line, err := json.Marshal(a)
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		return err
	}
	if err := say(answered{}); err != nil {
		return err
	}
	questions := bufio.NewScanner(in)
	for questions.Scan() {
		h, err := readHandover(record)
		if err == nil {
			_, err = h.state(func(int, string) *os.File { return nil })
		}
		if err == nil {
			err = check(slices.Clone(h.Program))
		}
		a := answered{}
		if err != nil {
			a.Error = err.Error()
		} else {
			a.Held = h.held()
		}
		if err := say(a); err != nil {
			return err
		}
	}
	return questions.Err()
}
