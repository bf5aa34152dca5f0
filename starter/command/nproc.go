package command

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/clusterrun/clusterrun/activities/process/resources"
)

// machine is how many tasks there may be one for each of.
type machine struct {
	gpus, cpus int
	// limitedBy is the variable that limits the GPUs, where one does.
	limitedBy string
}

// here returns this machine, as a program started from this shell sees it.
func here() machine {
	g := resources.ReadGPUs(os.Environ())
	return machine{gpus: len(g.Visible), cpus: runtime.NumCPU(), limitedBy: g.LimitedBy}
}

// parseNProc reads torchrun's words for a number of tasks (TR-06 to TR-09).
func parseNProc(text string, m machine) (int, error) {
	switch text {
	case "auto":
		if m.gpus > 0 {
			return m.gpus, nil
		}
		return m.cpus, nil
	case "cpu":
		return m.cpus, nil
	case "gpu":
		switch {
		case m.gpus > 0:
			return m.gpus, nil
		case m.limitedBy != "":
			return 0, fmt.Errorf("--nproc-per-node gpu: %s shows no GPU; change it, or give a number", m.limitedBy)
		}
		return 0, fmt.Errorf("--nproc-per-node gpu: no GPU is seen on this machine; give a number, or auto or cpu")
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("--nproc-per-node %q: give a number, gpu, cpu or auto", text)
	}
	return n, nil
}
