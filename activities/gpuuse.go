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

// gpuStale is how old the output of nvidia-smi may be.
const gpuStale = time.Minute

// gpuUse is the latest information of NVIDIA's driver about the processes on the GPUs. It
// comes from nvidia-smi, which hangs if a GPU does, so nothing waits for it.
type gpuUse struct {
	mu        sync.Mutex
	asking    bool
	asked     time.Time // start of the last query
	pause     time.Duration
	answered  time.Time
	processes []supervisor.GPUProcess
}

// latest returns the latest information, and starts a new query if it is old.
func (g *gpuUse) latest(h *Host) []supervisor.GPUProcess {
	program, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asking && (g.asked.IsZero() || time.Since(g.asked) >= max(g.pause, sampleEvery)) {
		g.asking, g.asked = true, time.Now()
		go g.ask(h, program) // not in the group: the end of the host does not wait for it
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
		h.Log.Debug("the use of the GPUs is unknown at the moment", zap.Error(err))
		return
	}
	g.processes, g.answered = processes, time.Now()
}

// readGPUUse runs nvidia-smi, and returns also how much processor time that took. The use of
// a GPU is divided equally among the processes that share it.
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
	busy := map[string]float64{} // share of each process of a GPU; 0 if unknown
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
