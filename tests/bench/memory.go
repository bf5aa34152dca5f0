package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// Resident returns processes' memory in bytes. Shared memory counts once (PSS), except in processes
// with unreadable smaps, where all resident memory counts.
func Resident(pids []int) (int64, error) {
	var total int64
	for _, pid := range pids {
		size, err := kilobytes(pid, "smaps_rollup", "Pss:")
		if errors.Is(err, fs.ErrPermission) {
			size, err = kilobytes(pid, "status", "VmRSS:")
		}
		if err != nil {
			return 0, err
		}
		total += size << 10
	}
	return total, nil
}

func kilobytes(pid int, file, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", pid, file, field)
}

// below returns a process and its descendants, except the processes in without and their
// descendants.
func below(root int, without []int) []int {
	children := map[int][]int{}
	pids, _ := proc.PIDs()
	for _, pid := range pids {
		if s, err := proc.ReadStat(pid); err == nil && !s.Dead() {
			children[s.PPID] = append(children[s.PPID], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		for _, child := range children[tree[i]] {
			if !slices.Contains(without, child) {
				tree = append(tree, child)
			}
		}
	}
	return tree
}

func pidfd(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// endsWithin reports whether a pidfd's process exits in time.
func endsWithin(fd int, within time.Duration) (bool, error) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, within.Milliseconds())))
		if err == unix.EINTR {
			continue
		}
		return n > 0, err
	}
}
