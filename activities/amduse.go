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

// amdProcesses is the directory in which AMD's driver has a directory for each process that computes
// on its GPUs.
func amdProcesses(root string) string { return filepath.Join(root, "sys/class/kfd/kfd/proc") }

// readAMDUse reads what AMD's driver tells in files. A GPU that several processes share counts as
// busy with all of them in equal parts.
func readAMDUse(root string) ([]supervisor.GPUProcess, time.Duration, error) {
	began := time.Now()
	processes, err := os.ReadDir(amdProcesses(root))
	if err != nil {
		return nil, time.Since(began), err
	}
	var uses []supervisor.GPUProcess
	using := map[string][]int{} // by the GPU: those of uses that are of its processes
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
				continue // a process opens all GPUs that it can see
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

// readNumber reads a file with a number.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false // the process has ended, or is another user's
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
