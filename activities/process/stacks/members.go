package stacks

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// members finds tasks' processes by their leaders: the leader's session, its descendants, and
// processes that have left both but carry the task's mark. Each list starts with the leader,
// followed by the other processes by age.
func members(ctx context.Context, all table, leaders []int, cookieVar string) map[int][]int {
	owner := make(map[int]int, len(leaders))
	for _, pid := range leaders {
		owner[pid] = pid
	}
	strays := make(map[int][]int) // by the parent that would have adopted them
	for pid, s := range all {
		switch lead, known := all[s.Session]; {
		case owner[s.Session] == s.Session && s.Session != 0 && known && s.Ticks >= lead.Ticks:
			owner[pid] = s.Session
		case owner[pid] == 0:
			strays[s.PPID] = append(strays[s.PPID], pid)
		}
	}
	adopt(ctx, all, owner, strays, leaders, cookieVar)
	lists := make(map[int][]int, len(leaders))
	for pid := range all {
		if lead := ownerOf(pid, all, owner); lead != 0 {
			lists[lead] = append(lists[lead], pid)
		}
	}
	for lead, pids := range lists {
		slices.SortFunc(pids, func(a, b int) int {
			switch lead {
			case a:
				return -1
			case b:
				return 1
			}
			return cmp.Or(cmp.Compare(all[a].Ticks, all[b].Ticks), cmp.Compare(a, b))
		})
	}
	return lists
}

// ownerOf follows parents up to a process with a known task.
func ownerOf(pid int, all table, owner map[int]int) int {
	const deepest = 1000 // the table is not a snapshot and may contain cycles
	for range deepest {
		if lead := owner[pid]; lead != 0 {
			return lead
		}
		parent := all[pid].PPID
		if parent <= 1 {
			return 0
		}
		pid = parent
	}
	return 0
}

// adopt finds orphans' owners. Orphans become children of the process that started the leaders,
// which is a subreaper, so adopt checks only that process's children.
func adopt(ctx context.Context, all table, owner map[int]int, strays map[int][]int, leaders []int, cookieVar string) {
	var candidates []int
	parents := make(map[int]bool)
	for _, lead := range leaders {
		parent := all[lead].PPID
		if parents[parent] || parent == 0 {
			continue
		}
		parents[parent] = true
		for _, pid := range strays[parent] {
			if pid != os.Getpid() {
				candidates = append(candidates, pid)
			}
		}
	}
	if len(candidates) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, markBound)
	defer cancel()
	marks := readMarks(ctx, slices.Concat(leaders, candidates), cookieVar)
	byMark := make(map[string]int)
	for _, lead := range leaders {
		m := marks[lead]
		if m.cgroup != "" {
			byMark[m.cgroup] = lead
		}
		// Further cookies belong to outer supervisors.
		if len(m.cookies) > 0 {
			byMark[m.cookies[0]] = lead
		}
	}
	for _, pid := range candidates {
		m := marks[pid]
		for _, text := range append(m.cookies, m.cgroup) {
			if lead := byMark[text]; lead != 0 && text != "" {
				owner[pid] = lead
				break
			}
		}
	}
}

// markBound limits the time to read processes' marks.
const markBound = time.Second

// marks are the cgroup and the cookie that the supervisor gave a process to identify it.
type marks struct {
	cgroup  string
	cookies []string
}

func readMarks(ctx context.Context, pids []int, cookieVar string) map[int]marks {
	var mu sync.Mutex
	all := make(map[int]marks, len(pids))
	background.Each(atOnce, pids, func(_ int, pid int) {
		read := make(chan marks, 1)
		if !detached(func() { read <- marks{readCgroup(pid), readCookies(pid, cookieVar)} }) {
			return
		}
		select {
		case m := <-read:
			mu.Lock()
			defer mu.Unlock()
			all[pid] = m
		case <-ctx.Done():
		}
	})
	return all
}

// readCgroup returns a process's cgroup, if a supervisor created it.
func readCgroup(pid int) string {
	raw, err := os.ReadFile(proc.Dir(pid) + "/cgroup")
	if err != nil {
		return ""
	}
	return parseCgroup(raw)
}

func parseCgroup(raw []byte) string {
	for line := range strings.Lines(string(raw)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		// <…>/clusterrun-<instance>/<process>, and perhaps the task's own nested cgroups.
		parts := strings.Split(path, "/")
		i := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, "clusterrun-") })
		if i >= 0 && i+1 < len(parts) {
			return strings.Join(parts[:i+2], "/")
		}
	}
	return ""
}

func readCookies(pid int, name string) []string {
	if name == "" {
		return nil
	}
	return strings.Fields(proc.Variable(pid, name))
}
