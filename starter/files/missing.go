package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Missing is output that cannot be read.
type Missing struct {
	// Processes are the names of the processes, or empty for a host with unknown ones.
	Processes []string
	// Why describes where the files are and why they cannot be read. It follows the names.
	Why string
}

func (m Missing) String() string { return strings.Join(m.Processes, ", ") + m.Why }

// Missing returns the wanted output that cannot be read, by place, and the hosts that could not
// be read completely.
func (w *Output) Missing() (all []Missing) {
	f := w.files
	of := map[int][]Process{}
	known := maps.Clone(w.there)
	for _, p := range f.Processes() {
		of[p.Rank] = append(of[p.Rank], p)
		known[p.Rank] = append(slices.Clip(known[p.Rank]), p.Attempt)
	}
	want := w.o.Selection.Of(f.status, known)
	var places []string
	names := map[string][]string{}
	add := func(place, name string) {
		if names[place] == nil {
			places = append(places, place)
		}
		names[place] = append(names[place], name)
	}
	told := map[*host]bool{}
	someReported := len(of) > 0
	for _, t := range f.status.Tasks {
		if !want.HasTask(t.Rank) {
			continue
		}
		for _, p := range of[t.Rank] {
			name := t.Name
			if p.Dir != t.LogDir {
				name = fmt.Sprintf("%s (attempt %d)", t.Name, p.Attempt)
			}
			if why := f.whyUnread(p, told); why != "" && want.HasAttempt(p.Rank, p.Attempt) {
				add(why, name)
			}
		}
		if len(of[t.Rank]) == 0 && len(w.there[t.Rank]) == 0 && w.isUnreported(t, someReported) {
			add(": the run did not record where they are", t.Name)
		}
	}
	for _, place := range places {
		all = append(all, Missing{names[place], place})
	}
	for _, h := range f.hosts {
		if h.err != nil && !h.isHere && !told[h] {
			all = append(all, Missing{Why: h.err.Error()})
		}
	}
	if earlier := w.earlier(want); len(earlier) > 0 {
		all = append(all, Missing{Why: fmt.Sprintf("the hosts of earlier processes of %s, because no worker executes the run", shorten.List(earlier, 5))})
	}
	return all
}

// If a process's files cannot be read, whyUnread returns where they are; otherwise it returns "".
// told records the hosts that it names.
func (f *Files) whyUnread(p Process, told map[*host]bool) string {
	here := f.Here(p.Dir)
	if here == nil {
		return ""
	}
	why := ", which no host worker serves"
	for _, h := range f.hosts {
		switch {
		case h.err == nil && h.reading && (h.name == p.Host && !h.read || slices.Contains(h.attempts[p.Rank], p.Attempt)):
			return ""
		case h.name != p.Host:
		case h.err != nil:
			told[h], why = true, "; "+h.err.Error()
		case h.listed:
			why = "; they have been removed"
		}
	}
	host := cmp.Or(p.Host, "another host")
	if errors.Is(here, fs.ErrNotExist) {
		return fmt.Sprintf(" on %s, in %s%s", host, filepath.Dir(filepath.Dir(p.Dir)), why)
	}
	return fmt.Sprintf(" on %s: %s%s", host, here, why)
}

// isUnreported reports whether a task has output in a place that the run has not reported. A run
// without a result or a worker does not report where its tasks ran, and a host does not report it
// before its first heartbeat. While the run is followed, a worker or a host may report it later.
func (w *Output) isUnreported(t outcome.TaskStatus, someReported bool) bool {
	s := w.files.status
	silent := !s.Open && s.Result == nil || !w.o.Live && (s.Unanswered || t.State == spec.TaskRunning && someReported)
	answered := slices.ContainsFunc(w.files.hosts, func(h *host) bool { return h.name == t.Host && h.listed && h.err == nil })
	return silent || !answered && isLost(s.Result, t.Host)
}

// isLost reports whether a host was lost with tasks before it reported where their output is. r
// may be nil.
func isLost(r *spec.RunResult, host string) bool {
	return r != nil && host != "" && slices.ContainsFunc(r.Tasks, func(t spec.TaskResult) bool {
		return t.Host == host && t.Exit != nil && t.Exit.Cause == spec.CauseHostLost && t.Exit.LogDir == ""
	})
}

// earlier returns the wanted tasks with earlier processes that are not here and ran on unknown
// hosts.
func (w *Output) earlier(want tasklog.Selection) (names []string) {
	if !w.files.unknown || w.files.status.Generation == 0 {
		return nil
	}
	for _, t := range w.files.status.Tasks {
		there := w.there[t.Rank]
		_, _, pruned := tasklog.Pruned(there)
		gaps := len(there) == 0 || there[len(there)-1] != len(there)-1
		if gaps && !pruned && want.HasTask(t.Rank) {
			names = append(names, t.Name)
		}
	}
	return names
}
