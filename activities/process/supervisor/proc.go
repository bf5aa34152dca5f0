package supervisor

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// procStat is the used part of /proc/<pid>/stat.
type procStat struct {
	state   byte
	ppid    int
	session int
	// ticks is when the process started, in clock ticks since boot: with the pid it
	// identifies a process uniquely.
	ticks uint64
	// user and system are the processor time of the process and of the children that it has
	// waited for.
	user, system time.Duration
	rss          int64 // pages
}

// dead reports whether nothing of the process runs any more.
func (s procStat) dead() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (procStat, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(raw)
}

var errStat = errors.New("malformed /proc/<pid>/stat")

func parseStat(raw []byte) (procStat, error) {
	// The second field is the program's name in parentheses, which can itself have spaces and
	// parentheses: the other fields follow the last one.
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return procStat{}, errStat
	}
	fields := bytes.Fields(raw[end+1:])
	if len(fields) < 22 || len(fields[0]) != 1 {
		return procStat{}, errStat
	}
	var s procStat
	var err error
	s.state = fields[0][0]
	if s.ppid, err = strconv.Atoi(string(fields[1])); err != nil {
		return procStat{}, errStat
	}
	if s.session, err = strconv.Atoi(string(fields[3])); err != nil {
		return procStat{}, errStat
	}
	if s.ticks, err = strconv.ParseUint(string(fields[19]), 10, 64); err != nil {
		return procStat{}, errStat
	}
	var used [4]int64 // by the process, and by its children
	for i := range used {
		if used[i], err = strconv.ParseInt(string(fields[11+i]), 10, 64); err != nil {
			return procStat{}, errStat
		}
	}
	s.user, s.system = time.Duration(used[0]+used[2])*userTick, time.Duration(used[1]+used[3])*userTick
	if s.rss, err = strconv.ParseInt(string(fields[21]), 10, 64); err != nil {
		return procStat{}, errStat
	}
	return s, nil
}

// userTick is the unit of times in /proc, on every platform that Go supports.
const userTick = 10 * time.Millisecond

// allPIDs returns every visible process.
func allPIDs() ([]int, error) {
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

// childLister lists the children that this process did not start itself: the orphans that
// were re-parented to it.
//
// The kernel keeps children by thread, and gives orphans to the first living thread, which is
// the main one. One small file therefore has them all, and a host with 256 tasks needs no
// scan of /proc when one of them ends. The list may contain some of our own children too; the
// caller knows those.
type childLister struct {
	path string // empty if the kernel has no such file; then /proc is scanned
	self int
}

// For tests: noChildren acts as if there were no such file, and listed is called after each
// list.
var (
	noChildren bool
	listed     func()
)

func newChildLister() *childLister {
	self := os.Getpid()
	l := &childLister{self: self}
	if noChildren {
		return l
	}
	path := "/proc/" + strconv.Itoa(self) + "/task/" + strconv.Itoa(self) + "/children"
	if _, err := os.ReadFile(path); err == nil {
		l.path = path
	}
	return l
}

func (l *childLister) list() []int {
	pids := l.read()
	if listed != nil {
		listed()
	}
	return pids
}

func (l *childLister) read() []int {
	if l.path == "" {
		return l.scan()
	}
	raw, err := os.ReadFile(l.path)
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(string(raw)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (l *childLister) scan() []int {
	all, _ := allPIDs()
	var pids []int
	for _, pid := range all {
		if stat, err := readStat(pid); err == nil && stat.ppid == l.self {
			pids = append(pids, pid)
		}
	}
	return pids
}
