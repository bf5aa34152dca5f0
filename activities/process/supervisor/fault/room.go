package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Needs is what tasks need from a host in addition to what our own programs use: files opened by
// the supervisor, and processes and threads.
type Needs struct{ Files, Processes int }

// ownFiles is the approximate number of files that a supervisor without tasks opens.
const ownFiles = 16

// Programs returns the approximate needs of a command and the programs that it starts for itself.
// Go's runtime aborts a program that cannot create another thread.
func Programs() Needs { return Needs{Processes: 16 * min(runtime.NumCPU(), 8)} }

// RoomForMain returns an error if this user's process limit is too low to start a command. With
// usual limits, the check is free.
func RoomForMain() error {
	const threads, few = 6, 64
	if maxProcesses() > few {
		return nil
	}
	return Needs{Processes: threads}.Room()
}

// Check returns an error if this host could not meet the needs even when idle.
func (n Needs) Check() error {
	if err := missing(n.Files, ownFiles, maxFiles(), "open files", LimitOf(unix.EMFILE)); err != "" {
		return Refuse(ErrLimit, err)
	}
	if err := missing(n.Processes, Programs().Processes, maxProcesses(), "processes", processLimit()); err != "" {
		return Refuse(ErrLimit, err)
	}
	return nil
}

// Room returns an error if this host cannot meet the needs on top of its present load.
func (n Needs) Room() error {
	open, _ := os.ReadDir("/proc/self/fd")
	if err := missing(n.Files, len(open), maxFiles(), "open files", LimitOf(unix.EMFILE)); err != "" {
		return errors.New(err)
	}
	most := maxProcesses()
	if missing(n.Processes, allThreads(), most, "", "") == "" {
		return nil // even all users' processes fit, so skip the slower search by owner
	}
	if err := missing(n.Processes, threadsOf(os.Getuid()), most, "processes", processLimit()); err != "" {
		return errors.New(err)
	}
	return nil
}

// missing describes by how much needed and has together exceed most, or returns "" if they do not.
// A most of 0 means no limit.
func missing(needed, has, most int, what, limit string) string {
	if needed == 0 || most == 0 || needed+has <= most {
		return ""
	}
	return fmt.Sprintf("%d %s are needed in addition to about %d%s", needed, what, has, limit)
}

// maxFiles returns the hard limit of open files, or 0 if unlimited.
func maxFiles() int { return bounded(MaxFiles()) }

// maxProcesses returns how many processes and threads this user may have, or 0 if unlimited, like
// root.
func maxProcesses() int {
	var limit unix.Rlimit
	if os.Geteuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return 0
	}
	return bounded(limit.Cur)
}

// bounded returns a limit, or 0 if the limit cannot be reached.
func bounded(limit uint64) int {
	if limit > 1<<31 {
		return 0
	}
	return int(limit)
}

// allThreads counts the machine's processes and threads.
func allThreads() int {
	text, _ := os.ReadFile("/proc/loadavg")
	_, rest, _ := bytes.Cut(text, []byte("/"))
	number, _, _ := bytes.Cut(rest, []byte(" "))
	n, _ := strconv.Atoi(string(number))
	return n
}

// threadsOf counts a user's visible processes and threads.
func threadsOf(uid int) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && numberIn(text, "Uid:") == uid {
			n += numberIn(text, "Threads:")
		}
	}
	return n
}

// numberIn returns the first number in a line of /proc/PID/status.
func numberIn(status []byte, name string) int {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	fields := append(bytes.Fields(line), nil)
	n, _ := strconv.Atoi(string(fields[0]))
	return n
}
