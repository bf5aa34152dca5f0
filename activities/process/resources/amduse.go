package resources

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// amdProcesses returns the path where AMD's driver provides a directory for each process that
// computes on its GPUs.
func amdProcesses(root string) string { return filepath.Join(root, "sys/class/kfd/kfd/proc") }

// readAMDUse reads the files of AMD's driver. It also returns how long this took.
func readAMDUse(root string) ([]supervisor.GPUProcess, time.Duration, error) {
	began := time.Now()
	if _, err := os.Stat(amdProcesses(root)); err != nil {
		return nil, time.Since(began), err
	}
	files, err := filepath.Glob(filepath.Join(amdProcesses(root), "*/vram_*"))
	if err != nil {
		return nil, time.Since(began), err
	}
	var processes []onGPU
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// A process opens all GPUs that it sees, and uses those where it has memory.
		if bytes := ReadNumber(file); err == nil && bytes > 0 {
			gpu := strings.TrimPrefix(filepath.Base(file), "vram_")
			processes = append(processes, onGPU{gpu: gpu, pid: pid, memory: int64(bytes)})
		}
	}
	busy := map[string]float64{}
	for gpu, minor := range AMDGPUs(root) {
		percent := ReadNumber(filepath.Join(root, "sys/class/drm", "renderD"+strconv.Itoa(minor), "device/gpu_busy_percent"))
		busy[gpu] = float64(percent) / 100
	}
	return sharing(processes, busy), time.Since(began), nil
}
