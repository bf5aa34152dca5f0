package supervisor

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// childLister lists orphans, which are the children that this process did not start.
//
// The kernel records children by thread, and assigns orphans to the first living thread, which is
// the main thread. One small file therefore lists all of them, and a host with 256 tasks does not
// have to scan /proc when one of them exits. The list may also contain children that this process
// did start, which the caller knows.
type childLister struct {
	path string // empty if the kernel lacks the file; then /proc is scanned
	self int
}

func newChildLister() *childLister {
	self := os.Getpid()
	l := &childLister{self: self}
	path := "/proc/" + strconv.Itoa(self) + "/task/" + strconv.Itoa(self) + "/children"
	if _, err := os.ReadFile(path); err == nil {
		l.path = path
	}
	return l
}

func (l *childLister) list() []int {
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
	all, _ := proc.PIDs()
	var pids []int
	for _, pid := range all {
		if stat, err := proc.ReadStat(pid); err == nil && stat.PPID == l.self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// zombie reports whether a child has exited and can be reaped.
func zombie(pid int) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil && info.Signo != 0
		}
	}
}
