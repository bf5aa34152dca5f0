package activities

import (
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/software"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// softwareNote records once which software a process uses, in a file next to its output. Of the
// tasks of a type on a host only the first one has it: the others use the same.
type softwareNote struct {
	lease   *taskLease
	process supervisor.Process

	mu   sync.Mutex // held while files are read, which may take as long as the file system does
	done bool
	// looks counts the looks for a Python program.
	looks int
}

// mostLooks is the number of heartbeats for which a Python program may take to begin.
const mostLooks = 30

func (l *taskLease) newSoftwareNote(p supervisor.Process) *softwareNote {
	return &softwareNote{lease: l, process: p, done: p.LogDir == "" || !l.plan.isFirstOfType(l.key.Task)}
}

// isFirstOfType reports whether a task has the lowest rank of the tasks of its type on this host.
func (p *plan) isFirstOfType(name string) bool {
	task, ok := p.task(name)
	for _, other := range p.Tasks {
		if t, known := p.task(other); known && t.Type == task.Type && t.Rank < task.Rank {
			return false
		}
	}
	return ok
}

// note records the software once a Python program has begun. With ended, or if that takes long, it
// does not wait for one.
func (n *softwareNote) note(ended bool) {
	if !n.mu.TryLock() {
		return
	}
	defer n.mu.Unlock()
	if n.done {
		return
	}
	dir := n.process.LogDir
	if _, err := os.Lstat(filepath.Join(dir, software.File)); err == nil {
		n.done = true // by another host worker
		return
	}
	if info, err := os.Stat(filepath.Join(dir, software.PathsFile)); (err != nil || info.Size() == 0) && !ended && n.looks < mostLooks {
		n.looks++
		return
	}
	n.done = true
	if err := software.Of(n.lease.Name, dir).Write(dir); err != nil {
		n.lease.Log.Debug("the software of a process is not recorded", zap.Stringer("task", n.process.Key), zap.Error(err))
	}
}
