package resources

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/background"
)

const (
	// sampleEvery is the age at which a process's sample is renewed. When a new process needs a
	// sample, the last samples must be at least sampleSoon old.
	sampleEvery = 10 * time.Second
	sampleSoon  = time.Second
	// sampleShare limits the cost of sampling on a host with many processes to 1/sampleShare of a
	// processor.
	sampleShare = 200
	// samplePatience limits the wait for the supervisor's sample.
	samplePatience = 5 * time.Second
)

// Sampler holds the living processes' latest usage samples. When a heartbeat needs one, the
// supervisor samples all processes together.
type Sampler struct {
	Supervisor supervisor.API
	Group      *background.Group
	Log        *zap.Logger

	mu sync.Mutex
	// looking reports whether samples are being taken. begun is when the current or last series of
	// samples started.
	looking   bool
	begun     time.Time
	pause     time.Duration
	byProcess map[supervisor.ProcessRef]supervisor.Sample
	seen      time.Time // when the samples in byProcess were taken
	silent    bool      // see Silent
	gpus      gpuUse
}

// Of returns a process's last sample and the time when it was taken. If the sample is old, Of
// starts taking new ones.
func (s *Sampler) Of(p supervisor.ProcessRef) (sample supervisor.Sample, at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample, known = s.byProcess[p]
	pause := max(s.pause, sampleSoon)
	if known {
		pause = max(s.pause, sampleEvery)
	}
	if !s.looking && (s.begun.IsZero() || time.Since(s.begun) >= pause) {
		s.looking, s.begun = true, time.Now()
		s.Group.Go(s.look)
	}
	return sample, s.seen, known
}

// Silent reports whether the supervisor has not answered the last request for a sample.
func (s *Sampler) Silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

func (s *Sampler) look(ctx context.Context) {
	gpus := s.gpus.latest(s)
	ctx, cancel := context.WithTimeout(ctx, samplePatience)
	defer cancel()
	asked := time.Now()
	reply, err := s.Supervisor.Sample(ctx, supervisor.SampleRequest{GPUs: gpus})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = false
	s.pause = sampleShare * time.Since(asked)
	s.silent = errors.Is(err, context.DeadlineExceeded)
	if err != nil {
		s.pause = 0 // the time was not the cost of a sample
		s.Log.Debug("process usage is currently unknown", zap.Error(err))
		return
	}
	s.seen = asked
	s.byProcess = make(map[supervisor.ProcessRef]supervisor.Sample, len(reply.Samples))
	for _, sample := range reply.Samples {
		s.byProcess[sample.Process] = sample
	}
}
