package activities

import (
	"context"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/resources"
	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// gpuStale is how old may be what nvidia-smi said.
const gpuStale = time.Minute

// gpuUse is what the driver of NVIDIA last said about the processes on the GPUs. It is asked
// by nvidia-smi, which hangs where a GPU does: nobody waits for it.
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
	program, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asking && (g.asked.IsZero() || time.Since(g.asked) >= max(g.pause, sampleEvery)) {
		g.asking, g.asked = true, time.Now()
		go g.ask(h, program) // not one that the end of the host waits for
	}
	if time.Since(g.answered) > gpuStale+g.pause {
		return nil
	}
	return g.processes
}

func (g *gpuUse) ask(h *Host, program string) {
	processes, took, err := readGPUUse(h.group.Context(), program)
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

// readGPUUse asks nvidia-smi, and says how much processor time that took. A GPU that several
// processes share is busy with all of them in equal parts.
func readGPUUse(ctx context.Context, program string) ([]supervisor.GPUProcess, time.Duration, error) {
	gpus, took, err := resources.AskNVIDIA(ctx, program, "--query-gpu=uuid,utilization.gpu")
	if err != nil {
		return nil, took, err
	}
	apps, more, err := resources.AskNVIDIA(ctx, program, "--query-compute-apps=gpu_uuid,pid,used_gpu_memory")
	if err != nil {
		return nil, took + more, err
	}
	sharing := map[string]float64{}
	for _, app := range apps {
		sharing[app[0]]++
	}
	busy := map[string]float64{} // of each of those that share a GPU; what it does not tell is 0
	for _, gpu := range gpus {
		if percent, err := strconv.ParseFloat(gpu[1], 64); err == nil && sharing[gpu[0]] > 0 {
			busy[gpu[0]] = percent / 100 / sharing[gpu[0]]
		}
	}
	var processes []supervisor.GPUProcess
	for _, app := range apps {
		pid, err := strconv.Atoi(app[1])
		if err != nil || len(app) < 3 {
			continue
		}
		mebibytes, _ := strconv.ParseInt(app[2], 10, 64) // "[N/A]" in a container or with MIG
		processes = append(processes, supervisor.GPUProcess{PID: pid, Memory: mebibytes << 20, Busy: busy[app[0]]})
	}
	return processes, took + more, nil
}
