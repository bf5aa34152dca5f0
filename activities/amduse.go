package activities

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/resources"
	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// amdProcesses returns the directory in which AMD's driver has a directory for each process that
// computes on its GPUs.
func amdProcesses(root string) string { return filepath.Join(root, "sys/class/kfd/kfd/proc") }

// readAMDUse reads the files of AMD's driver, and returns also the time that took. The use of a
// GPU is divided equally among the processes that share it.
func readAMDUse(root string) ([]supervisor.GPUProcess, time.Duration, error) {
	began := time.Now()
	processes, err := os.ReadDir(amdProcesses(root))
	if err != nil {
		return nil, time.Since(began), err
	}
	var uses []supervisor.GPUProcess
	using := map[string][]int{} // indexes in uses of the processes of a GPU
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		files, err := fs.Glob(os.DirFS(amdProcesses(root)), process.Name()+"/vram_*")
		if err != nil {
			return nil, time.Since(began), err
		}
		for _, name := range files {
			bytes, ok := readNumber(filepath.Join(amdProcesses(root), name))
			if !ok || bytes == 0 {
				continue // it does not use this GPU: a process opens all GPUs it can see
			}
			_, gpu, _ := strings.Cut(filepath.Base(name), "_")
			using[gpu] = append(using[gpu], len(uses))
			uses = append(uses, supervisor.GPUProcess{PID: pid, Memory: bytes})
		}
	}
	for gpu, minor := range resources.AMDGPUs(root) {
		percent, _ := readNumber(filepath.Join(root, "sys/class/drm", "renderD"+strconv.Itoa(minor), "device/gpu_busy_percent"))
		for _, i := range using[gpu] {
			uses[i].Busy = float64(percent) / 100 / float64(len(using[gpu]))
		}
	}
	return uses, time.Since(began), nil
}

// readNumber reads a number from a file.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false // the process has ended, or belongs to another user
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
