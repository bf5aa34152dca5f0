package activities

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// gpuStale is how old an answer of the driver may be.
const gpuStale = time.Minute

// gpuUse is what the driver last said about the processes on the GPUs. A question hangs where a
// GPU does, so nobody waits for the answer.
type gpuUse struct {
	mu        sync.Mutex
	asking    bool
	asked     time.Time // when last
	pause     time.Duration
	answered  time.Time
	processes []supervisor.GPUProcess
}

// latest returns what is known, and begins to ask again where that is old.
func (g *gpuUse) latest(h *Host) []supervisor.GPUProcess {
	ask := gpuDriver()
	if ask == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asking && (g.asked.IsZero() || time.Since(g.asked) >= max(g.pause, sampleEvery)) {
		g.asking, g.asked = true, time.Now()
		go g.ask(h, ask) // not one that the end of the host waits for
	}
	if time.Since(g.answered) > gpuStale+g.pause {
		return nil
	}
	return g.processes
}

// askGPUs asks a driver about the processes on its GPUs, and says how much processor time that took.
type askGPUs func(context.Context) (_ []supervisor.GPUProcess, took time.Duration, _ error)

// gpuDriver returns how the driver of this host is asked; nil: there is none that can be.
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

func (g *gpuUse) ask(h *Host, ask askGPUs) {
	processes, took, err := ask(h.group.Context())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asking = false
	g.pause = sampleShare * took
	if err != nil {
		h.Log.Debug("what GPUs are used for is not known now", zap.Error(err))
		return
	}
	g.processes, g.answered = processes, time.Now()
}
