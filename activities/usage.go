package activities

import (
	"math"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
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
