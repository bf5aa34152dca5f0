package activities

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// metricsFile writes the numbers that a process reports with its progress to a file next to its
// output.
type metricsFile struct {
	lease   *taskLease
	process supervisor.Process

	mu      sync.Mutex // held while the file is written, for as long as that takes
	written time.Time
	last    time.Time // of the last report in the file
}

const (
	// maxPending is the maximum time to collect reports, and pendingShare its inverse share of the
	// process's life so far.
	maxPending, pendingShare = 2 * time.Minute, 10
)

// note writes the reports if they have been collected for long enough.
func (m *metricsFile) note() {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	if now := m.lease.now(); now.Sub(m.written) >= min(maxPending, now.Sub(m.process.Started)/pendingShare) {
		m.write(now)
	}
}

// end writes the last reports of a process that has exited.
func (m *metricsFile) end(exit *supervisor.Exit) {
	if exit.Lost {
		return
	}
	_ = m.lease.plan.User.Do(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.write(m.lease.now())
		return nil
	})
}

// write writes the reports, unless the file contains them. m.mu must be held.
func (m *metricsFile) write(now time.Time) {
	reports := m.lease.services.Reports(m.lease.key)
	m.written = now
	if m.process.LogDir == "" || len(reports) == 0 || reports[len(reports)-1].At.Equal(m.last) {
		return
	}
	if err := tasklog.WriteMetrics(m.process.LogDir, reports); err != nil {
		m.lease.Log.Debug("could not record a process's metrics", zap.Stringer("task", m.process.Key), zap.Error(err))
		return
	}
	m.last = reports[len(reports)-1].At
}
