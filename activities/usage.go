package activities

import (
	"context"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// sampleEvery is the age at which the sample of a process is renewed, and sampleSoon the
	// minimal age of the last samples when a new process needs one.
	sampleEvery = 10 * time.Second
	sampleSoon  = time.Second
	// sampleShare bounds the cost of sampling on a host with many processes: one part in that
	// many of a processor.
	sampleShare = 200
	// samplePatience is how long the supervisor may take to sample.
	samplePatience = 10 * time.Second
)

// samples has the latest samples of what the living processes use. They are taken by the
// supervisor when a heartbeat needs them, for all processes at once.
type samples struct {
	mu sync.Mutex
	// looking reports whether samples are being taken. begun is when that, or the last time,
	// began.
	looking   bool
	begun     time.Time
	pause     time.Duration
	byProcess map[supervisor.ProcessRef]supervisor.Sample
	seen      time.Time // when byProcess was taken
	gpus      gpuUse
}

// of returns the last sample of a process and when it was taken, and starts to take new
// samples if it is old.
func (s *samples) of(h *Host, p supervisor.ProcessRef) (sample supervisor.Sample, at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample, known = s.byProcess[p]
	pause := max(s.pause, sampleSoon)
	if known {
		pause = max(s.pause, sampleEvery)
	}
	if !s.looking && (s.begun.IsZero() || time.Since(s.begun) >= pause) {
		s.looking, s.begun = true, time.Now()
		h.group.Go(func(ctx context.Context) { s.look(ctx, h) })
	}
	return sample, s.seen, known
}

func (s *samples) look(ctx context.Context, h *Host) {
	ctx, cancel := context.WithTimeout(ctx, samplePatience)
	defer cancel()
	reply, err := h.Supervisor.Sample(ctx, supervisor.SampleRequest{GPUs: s.gpus.latest(h)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = false
	s.pause = sampleShare * time.Since(s.begun)
	if err != nil {
		h.Log.Debug("the use of processes is unknown at the moment", zap.Error(err))
		return
	}
	s.seen = s.begun
	s.byProcess = make(map[supervisor.ProcessRef]supervisor.Sample, len(reply.Samples))
	for _, sample := range reply.Samples {
		s.byProcess[sample.Process] = sample
	}
}

// usage returns what the living process uses and has written; nil while that is unknown.
func (l *taskLease) usage(p supervisor.Process, written int64) *spec.LiveUsage {
	s, at, ok := l.samples.of(l.Host, p.Ref())
	if !ok {
		return nil
	}
	u := &spec.LiveUsage{
		Usage: usageOf(s.Usage), CPUs: thousandths(s.CPUs), GPUs: thousandths(s.GPUs),
		RSSBytes: s.RSS, GPUMemoryBytes: s.GPUMemory, Processes: s.Processes,
	}
	u.OutputBytes = written
	u.SilentSeconds = l.silentFor(at, lifecycle.Signs{Output: written, CPU: s.Usage.User + s.Usage.System})
	return u
}

func usageOf(u supervisor.Usage) spec.Usage {
	return spec.Usage{
		UserSeconds: thousandths(u.User.Seconds()), SystemSeconds: thousandths(u.System.Seconds()), MaxRSSBytes: u.MaxRSS,
		GPUSeconds: thousandths(u.GPUTime.Seconds()), MaxGPUMemoryBytes: u.MaxGPUMemory,
	}
}

// thousandths rounds a number, for people and histories.
func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }
