// Package sampling samples processes' use of processors and memory, through the supervisor, and of
// GPUs, through their drivers.
package sampling

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/background"
)

const (
	// sampleEvery is the age at which a process's sample is renewed. sampleSoon is the minimum age
	// of the last samples when a new process needs one.
	sampleEvery = 10 * time.Second
	sampleSoon  = time.Second
	// sampleShare limits the cost of sampling on a host with many processes to 1/sampleShare of a
	// processor.
	sampleShare = 200
	// samplePatience limits the wait for the supervisor's sample.
	samplePatience = 10 * time.Second
)

// Sampler holds the living processes' latest usage samples. When a heartbeat needs one, the
// supervisor samples all processes together.
type Sampler struct {
	Supervisor supervisor.API
	Group      *background.Group
	Log        *zap.Logger

	mu sync.Mutex
	// looking reports whether samples are being taken. begun is when the present or last series of
	// samples started.
	looking   bool
	begun     time.Time
	pause     time.Duration
	byProcess map[supervisor.ProcessRef]supervisor.Sample
	seen      time.Time // when byProcess was taken
	gpus      gpuUse
}

// Of returns a process's last sample and its time, and starts taking new samples if it is old.
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

func (s *Sampler) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, samplePatience)
	defer cancel()
	gpus := s.gpus.latest(s)
	asked := time.Now()
	reply, err := s.Supervisor.Sample(ctx, supervisor.SampleRequest{GPUs: gpus})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = false
	s.pause = sampleShare * time.Since(asked)
	if err != nil {
		s.Log.Debug("process usage is currently unknown", zap.Error(err))
		return
	}
	s.seen = asked
	s.byProcess = make(map[supervisor.ProcessRef]supervisor.Sample, len(reply.Samples))
	for _, sample := range reply.Samples {
		s.byProcess[sample.Process] = sample
	}
}
