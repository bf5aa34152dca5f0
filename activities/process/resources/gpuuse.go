package resources

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

const (
	// gpuStale is the maximum age of a usable driver answer.
	gpuStale = time.Minute
	// gpuPatience limits a sample's wait for the driver.
	gpuPatience = 2 * time.Second
)

// gpuUse is the driver's latest information about the processes on the GPUs. If a GPU hangs, a
// query also hangs, so waits are limited.
type gpuUse struct {
	mu        sync.Mutex
	asked     time.Time     // start of the last query
	done      chan struct{} // closed when that query returns; nil if none is running
	pause     time.Duration
	answered  time.Time
	processes []supervisor.GPUProcess
}

// latest returns the latest information. If it is old, latest queries the driver and briefly waits
// for the answer.
func (g *gpuUse) latest(s *Sampler) []supervisor.GPUProcess {
	ask := gpuDriver()
	if ask == nil {
		return nil
	}
	g.mu.Lock()
	if g.done == nil && (g.asked.IsZero() || time.Since(g.asked) >= max(g.pause, sampleEvery)) {
		g.asked, g.done = time.Now(), make(chan struct{})
		go g.ask(s, ask) // not in the group, so that the host's shutdown does not wait for it
	}
	done := g.done
	g.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-time.After(gpuPatience):
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.answered) > gpuStale+g.pause {
		return nil
	}
	return g.processes
}

// askGPUs queries a driver for the processes on its GPUs, and also returns an upper bound on the
// processor time used.
type askGPUs func(context.Context) (_ []supervisor.GPUProcess, took time.Duration, _ error)

// gpuDriver returns the query for this host's driver, or nil if there is none.
func gpuDriver() askGPUs {
	if program, err := exec.LookPath("nvidia-smi"); err == nil {
		return func(ctx context.Context) ([]supervisor.GPUProcess, time.Duration, error) {
			return readNVIDIAUse(ctx, program)
		}
	}
	if _, err := os.Stat(amdProcesses("/")); err == nil {
		return func(context.Context) ([]supervisor.GPUProcess, time.Duration, error) { return readAMDUse("/") }
	}
	return nil
}

// onGPU is the driver's account of a process on one GPU.
type onGPU struct {
	gpu    string
	pid    int   // 0 if the driver does not report it
	memory int64 // bytes
}

// sharing returns the processes' use of GPUs. busy is the use of each GPU, from 0 to 1, which is
// divided equally among the processes on it. A missing GPU counts as 0.
func sharing(processes []onGPU, busy map[string]float64) (uses []supervisor.GPUProcess) {
	count := map[string]float64{}
	for _, p := range processes {
		count[p.gpu]++
	}
	for _, p := range processes {
		if p.pid != 0 {
			uses = append(uses, supervisor.GPUProcess{PID: p.pid, Memory: p.memory, Busy: busy[p.gpu] / count[p.gpu]})
		}
	}
	return uses
}

func (g *gpuUse) ask(s *Sampler, ask askGPUs) {
	processes, took, err := ask(s.Group.Context())
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.done)
	g.done = nil
	g.pause = sampleShare * took
	if err != nil {
		s.Log.Debug("GPU usage is currently unknown", zap.Error(err))
		return
	}
	g.processes, g.answered = processes, time.Now()
}
