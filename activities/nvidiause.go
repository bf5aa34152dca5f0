package activities

import (
	"context"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/resources"
	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// readNVIDIAUse runs nvidia-smi, and returns also how much processor time that took. The use of
// a GPU is divided equally among the processes that share it.
func readNVIDIAUse(ctx context.Context, program string) ([]supervisor.GPUProcess, time.Duration, error) {
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
