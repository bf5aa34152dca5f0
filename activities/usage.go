package activities

import (
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/series"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// usage returns the resources that the living process uses and the size of its output, or nil while
// these are unknown.
func (l *taskLease) usage(p supervisor.Process, written int64) *spec.LiveUsage {
	s, at, ok := l.samples.Of(p.Ref())
	if !ok {
		return nil
	}
	u := &spec.LiveUsage{
		Usage: usageOf(s.Usage), CPUs: thousandths(s.CPUs), GPUs: thousandths(s.GPUs),
		RSSBytes: s.RSS, GPUMemoryBytes: s.GPUMemory, Processes: s.Processes,
	}
	u.OutputBytes = written
	l.silentFor(u, at, lifecycle.Liveness{Output: written, CPU: s.Usage.User + s.Usage.System})
	return u
}

func usageOf(u supervisor.Usage) spec.Usage {
	return spec.Usage{
		UserSeconds: thousandths(u.User.Seconds()), SystemSeconds: thousandths(u.System.Seconds()), MaxRSSBytes: u.MaxRSS,
		GPUSeconds: thousandths(u.GPUTime.Seconds()), MaxGPUMemoryBytes: u.MaxGPUMemory,
	}
}

// thousandths rounds a number to three decimals, which is enough for readers and keeps
// histories small.
func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }

// usageHistory records a process's resource usage over time, in a file next to its output. Each
// point contains the difference of two totals.
type usageHistory struct {
	lease   *taskLease
	process supervisor.Process

	mu   sync.Mutex // held while the file is written, for as long as that takes
	file *tasklog.Usage
	// known reports whether the other fields are known. If another host worker started the process,
	// they are unknown until the first sample.
	known          bool
	at             time.Time
	used           supervisor.Usage
	last           supervisor.Sample
	steps, seconds float64
}

const (
	// freshFor is the maximum age of a process that counts as just started.
	freshFor = 5 * time.Second
	// Up to shortLife, the kernel measures a process's memory better than samples do.
	shortLife = 20 * time.Second
)

func (l *taskLease) newUsageHistory(p supervisor.Process) *usageHistory {
	return &usageHistory{lease: l, process: p, file: tasklog.NewUsage(p.LogDir, func() []series.Report { return l.services.Reports(l.key) }), at: p.Started, known: l.now().Sub(p.Started) < freshFor}
}

// note records the latest sample, unless it is already recorded.
func (u *usageHistory) note() {
	s, at, ok := u.lease.samples.Of(u.process.Ref())
	if !ok || u.process.LogDir == "" || !u.mu.TryLock() {
		return
	}
	defer u.mu.Unlock()
	if at.After(u.at) {
		u.add(at, s)
	}
}

// end records the rest of the process's life.
func (u *usageHistory) end(e *supervisor.Exit) {
	if e == nil || e.Lost || u.process.LogDir == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	s := supervisor.Sample{Usage: e.Usage, RSS: u.last.RSS, GPUMemory: u.last.GPUMemory}
	if e.Ended.Sub(u.process.Started) < shortLife {
		s.RSS, s.GPUMemory = e.Usage.MaxRSS, e.Usage.MaxGPUMemory
	}
	if e.Ended.After(u.at) {
		u.add(e.Ended, s)
	}
	u.failed(u.file.Flush())
}

// add adds the point that ends at the given time. u.mu must be held.
func (u *usageHistory) add(at time.Time, s supervisor.Sample) {
	steps, seconds := u.lease.services.Steps(u.process.Key)
	if u.known {
		p := series.Point{From: u.at.UTC(), Seconds: at.Sub(u.at).Seconds(), RSSBytes: float64(s.RSS), GPUMemoryBytes: float64(s.GPUMemory)}
		busy := func(now, before time.Duration) float64 { return max(0, (now-before).Seconds()) / p.Seconds }
		p.CPUs = busy(s.Usage.User+s.Usage.System, u.used.User+u.used.System)
		p.GPUs = busy(s.Usage.GPUTime, u.used.GPUTime)
		p.MaxCPUs, p.MaxGPUs = p.CPUs, p.GPUs
		if steps < u.steps || seconds < u.seconds { // steps are counted differently from now on
			u.steps, u.seconds = 0, 0
		}
		if p.Steps = steps - u.steps; p.Steps > 0 {
			p.StepSeconds = (seconds - u.seconds) / p.Steps
			p.MaxStepSeconds = p.StepSeconds
		}
		u.failed(u.file.Add(p))
	}
	u.known, u.at, u.used, u.last, u.steps, u.seconds = true, at, s.Usage, s, steps, seconds
}

func (u *usageHistory) failed(err error) {
	if err != nil {
		u.lease.Log.Debug("could not record a process's usage", zap.Stringer("task", u.process.Key), zap.Error(err))
	}
}
