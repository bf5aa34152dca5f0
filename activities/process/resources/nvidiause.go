package resources

import (
	"context"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// readNVIDIAUse runs nvidia-smi, and also returns the processor time used.
func readNVIDIAUse(ctx context.Context, program string) ([]supervisor.GPUProcess, time.Duration, error) {
	gpus, took, err := AskNVIDIA(ctx, program, "--query-gpu=uuid,utilization.gpu")
	if err != nil {
		return nil, took, err
	}
	apps, more, err := AskNVIDIA(ctx, program, "--query-compute-apps=gpu_uuid,pid,used_gpu_memory")
	if err != nil {
		return nil, took + more, err
	}
	busy := map[string]float64{}
	for _, gpu := range gpus {
		if percent, err := strconv.ParseFloat(gpu[1], 64); err == nil {
			busy[gpu[0]] = percent / 100
		}
	}
	processes := make([]onGPU, len(apps))
	for i, app := range apps {
		processes[i].gpu = app[0]
		if len(app) < 3 {
			continue
		}
		processes[i].pid, _ = strconv.Atoi(app[1])       // not reported to every user
		mebibytes, _ := strconv.ParseInt(app[2], 10, 64) // "[N/A]" in a container or with MIG
		processes[i].memory = mebibytes << 20
	}
	return sharing(processes, busy), took + more, nil
}
