package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Stat contains those fields of a process's or thread's stat file that are used.
type Stat struct {
	Name    string
	State   byte
	PPID    int
	Group   int
	Session int
	Threads int
	// Ticks is the process's start time, in clock ticks since boot. Together with the ID it
	// identifies a process uniquely.
	Ticks uint64
	// User and System are the process's CPU times; ChildUser and ChildSystem include only children
	// that it has waited for.
	User, System, ChildUser, ChildSystem time.Duration
	RSS                                  int64 // pages
}

// Dead reports whether no part of the process is running. If only the main thread has exited, the
// process's state is that of a zombie, but the process is not dead.
func (s Stat) Dead() bool { return s.State == 'X' || s.State == 'Z' && s.Threads <= 1 }

// Tick is the unit of times in /proc (USER_HZ). It is the same on every platform that Go supports.
const Tick = 10 * time.Millisecond

// Dir returns a process's directory.
func Dir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// ReadStat reads a process's stat file.
func ReadStat(pid int) (Stat, error) { return ReadStatIn(Dir(pid)) }

// ReadStatIn reads the stat file in the directory of a process or thread.
func ReadStatIn(dir string) (Stat, error) {
	raw, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return parseStat(raw)
}

// ReadStatInto is like ReadStat, but hardly allocates memory. buf must be large enough for the
// file.
func ReadStatInto(pid int, buf []byte) (Stat, error) {
	path := append(strconv.AppendInt([]byte("/proc/"), int64(pid), 10), "/stat"...)
	fd, err := unix.Open(string(path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Stat{}, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, buf)
	}
	if err != nil {
		return Stat{}, err
	}
	return parseStat(buf[:n])
}

var errStat = errors.New("malformed stat file")

func parseStat(raw []byte) (Stat, error) {
	// The second field is the program's name in parentheses, and may contain spaces and
	// parentheses. The remaining fields follow the last parenthesis.
	start, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if start < 0 || end < start {
		return Stat{}, errStat
	}
	fields := bytes.Fields(raw[end+1:])
	if len(fields) < 22 || len(fields[0]) != 1 {
		return Stat{}, errStat
	}
	var failed error
	number := func(i int) int64 {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			failed = errStat
		}
		return n
	}
	used := func(i int) time.Duration { return time.Duration(number(i)) * Tick }
	s := Stat{
		Name: string(raw[start+1 : end]), State: fields[0][0],
		PPID: int(number(1)), Group: int(number(2)), Session: int(number(3)), Threads: int(number(17)), Ticks: uint64(number(19)),
		User: used(11), System: used(12), ChildUser: used(13), ChildSystem: used(14), RSS: number(21),
	}
	if failed != nil {
		return Stat{}, failed
	}
	return s, nil
}

// PIDs returns the IDs of all visible processes.
func PIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
