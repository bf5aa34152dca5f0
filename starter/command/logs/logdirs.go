package logs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// logFiles locates one process's files, as reported by its run.
type logFiles struct {
	name, host    string
	dir           string // empty if the run does not report it
	attempt, rank int
	meant         bool // whether --attempt selects it
}

// logFiles returns the selected tasks' files. They are from each task's last process and, if the
// run has ended, from earlier processes with files that were kept.
func (l *Reader) logFiles(s *starter.Status) []logFiles {
	wanted, _ := l.Selected.ranks(s)
	lost := lostHosts(s.Result)
	of := map[int][]starter.Process{}
	for _, p := range l.run.FilesOf(s).Processes() {
		of[p.Rank] = append(of[p.Rank], p)
	}
	var files []logFiles
	for _, t := range s.Tasks {
		if wanted != nil && !wanted[t.Rank] {
			continue
		}
		var own []logFiles
		var attempts []int
		for _, p := range of[t.Rank] {
			f := logFiles{name: t.Name, host: p.Host, dir: p.Dir, attempt: p.Attempt, rank: p.Rank}
			if p.Dir != t.LogDir {
				f.name = fmt.Sprintf("%s (attempt %d)", t.Name, p.Attempt)
			}
			own, attempts = append(own, f), append(attempts, p.Attempt)
		}
		meant := l.Selected.Of(s, map[int][]int{t.Rank: attempts})
		for _, f := range own {
			f.meant = meant.HasAttempt(t.Rank, f.attempt)
			files = append(files, f)
		}
		// A run without a result or a worker does not report where its tasks ran. Neither does a
		// host before its first heartbeat, even if other hosts do. With Follow, the last two may
		// report it later.
		silent := !s.Open && s.Result == nil || !l.Follow && (s.Unanswered || t.State == spec.TaskRunning && someHeard(s))
		if (silent || lost[t.Host] && !l.answered(t.Host)) && len(own) == 0 && len(l.there[t.Rank]) == 0 {
			files = append(files, logFiles{name: t.Name, host: t.Host, meant: true})
		}
	}
	return files
}

// lostHosts returns the hosts that were lost with tasks before they reported where their output
// is. r may be nil.
func lostHosts(r *spec.RunResult) map[string]bool {
	lost := map[string]bool{}
	if r == nil {
		return lost
	}
	for _, t := range r.Tasks {
		if t.Host != "" && t.Exit != nil && t.Exit.Cause == spec.CauseHostLost && t.Exit.LogDir == "" {
			lost[t.Host] = true
		}
	}
	return lost
}

// someHeard reports whether the location of at least one task's output is known.
func someHeard(s *starter.Status) bool {
	return slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.LogDir != "" })
}

// ownDir returns the default log directory of a run by a host worker with our state directory.
func (l *Reader) ownDir(s *starter.Status) string {
	return tasklog.RunDir(l.LogsDir(), s.RunID, s.ExecutionID)
}

// RunDirs returns the directories on this machine that contain logs of the run.
func (l *Reader) RunDirs(s *starter.Status) []string {
	dirs := []string{l.ownDir(s)}
	add := func(dir string) {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	files := l.run.FilesOf(s)
	for _, p := range files.Processes() {
		if runDir, _, _, _ := tasklog.SplitProcessDir(p.Dir); files.Here(p.Dir) == nil {
			add(runDir)
		}
	}
	for _, h := range l.Hosts {
		add(h.Here)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir()
	})
}

// namesLeftOut names, once each, the selected processes with output that cannot be shown, and
// reports whether there are any.
func (l *Reader) namesLeftOut(s *starter.Status) (some bool) {
	var places []string
	names := map[string][]string{} // names by location
	for _, f := range l.logFiles(s) {
		place := l.whyNotHere(s, f)
		if place != "" {
			if l.isRead(f) {
				continue
			}
			place += l.whyNotServed(f)
		}
		if place == "" || !f.meant {
			continue
		}
		if some = true; l.named[f] {
			continue
		}
		l.named[f] = true
		if names[place] == nil {
			places = append(places, place)
		}
		names[place] = append(names[place], f.name)
	}
	if len(places) == 0 {
		return some
	}
	text := fmt.Sprintf("logs of run %s that cannot be read are left out:", l.run.ID)
	for _, place := range places {
		text += "\n" + strings.Join(names[place], ", ") + place
	}
	l.Say("%s", text)
	return some
}

// whyNotHere returns where a process's files are if they cannot be read here, and "" if they
// can.
func (l *Reader) whyNotHere(s *starter.Status, f logFiles) string {
	if f.dir == "" {
		return ": the run does not say where they are"
	}
	host := cmp.Or(f.host, "another host")
	err := l.run.FilesOf(s).Here(f.dir)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf(" on %s, in %s", host, filepath.Dir(filepath.Dir(f.dir)))
	}
	return fmt.Sprintf(" on %s: %s", host, err)
}
