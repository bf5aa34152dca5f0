package activities

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// minLeft is the minimum shared memory, in bytes, that is worth a line in the report.
const minLeft = 1 << 20

// leftInShm returns the unused files in shared memory that a run's user created while the run's
// processes lived. processes must contain all of the run's processes on this host.
func (p *plan) leftInShm(processes []supervisor.Process) ([]diskspace.ShmFile, error) {
	var since, until time.Time
	for _, q := range processes {
		if since.IsZero() || q.Started.Before(since) && !q.Started.IsZero() {
			since = q.Started
		}
		if q.Exit != nil && q.Exit.Ended.After(until) {
			until = q.Exit.Ended
		}
	}
	uid := uint32(os.Getuid()) //nolint:gosec // never negative on Linux
	if p != nil && p.User != nil {
		uid = p.User.UID
	}
	return diskspace.ShmLeft(diskspace.ShmDir, uid, since, until)
}

// reportShm returns what a run's processes have left in shared memory, or nil if it is negligible.
func (h *Host) reportShm(p *plan, processes []supervisor.Process) *spec.SharedMemory {
	left, err := p.leftInShm(processes)
	space, also := diskspace.Of(diskspace.ShmDir)
	if n := diskspace.ShmBytes(left); err == nil && also == nil && n >= minLeft {
		return &spec.SharedMemory{Host: h.Name, Left: n, Files: len(left), Size: int64(space.All)} //nolint:gosec // a size
	}
	return nil
}

// cleanShm removes what the run's earlier processes have left in shared memory. It removes nothing
// while any task lives on this host, since that task may need the files.
func (l *taskLease) cleanShm() {
	all, err := l.Supervisor.Processes(l.ctx, runkey.Run{})
	var mine []supervisor.Process
	for _, q := range all.Processes {
		if q.Exit == nil {
			return
		}
		if q.Key.Run == l.key.Run {
			mine = append(mine, q)
		}
	}
	if err != nil || len(mine) == 0 {
		return
	}
	left, err := l.plan.leftInShm(mine)
	if err == nil {
		left, err = diskspace.RemoveShm(diskspace.ShmDir, left)
	}
	if n := len(left); n > 0 || err != nil {
		l.Log.Info("removed shared memory left by exited processes (clean_shm)", zap.Int("files", n), zap.Int64("bytes", diskspace.ShmBytes(left)), zap.Error(err))
	}
}

// shmFull returns a sentence if shared memory is nearly full.
func shmFull() string {
	space, err := diskspace.Of(diskspace.ShmDir)
	if err != nil || space.All == 0 || space.Free > space.All/20 {
		return ""
	}
	return fmt.Sprintf("%s is full: %d of %d MiB are in use", diskspace.ShmDir, (space.All-space.Free)>>20, space.All>>20)
}
