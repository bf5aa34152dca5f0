package specs

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/clusterrun/clusterrun/activities/process/resources"
)

// Machine counts the resources that --nproc-per-node may turn into one task each.
type Machine struct {
	Gpus, Cpus int
	// LimitedBy is the variable that limits the GPUs, or empty.
	LimitedBy string
}

// LocalMachine describes this machine as seen by a program that is started from this shell.
func LocalMachine() Machine {
	g := resources.ReadGPUs(os.Environ())
	return Machine{Gpus: len(g.Visible), Cpus: runtime.NumCPU(), LimitedBy: g.LimitedBy}
}

// ParseNProc parses torchrun's values for a number of tasks (TR-06 to TR-09).
func ParseNProc(text string, m Machine) (int, error) {
	switch text {
	case "auto":
		if m.Gpus > 0 {
			return m.Gpus, nil
		}
		return m.Cpus, nil
	case "cpu":
		return m.Cpus, nil
	case "gpu":
		switch {
		case m.Gpus > 0:
			return m.Gpus, nil
		case m.LimitedBy != "":
			return 0, fmt.Errorf("--nproc-per-node gpu: %s hides all GPUs; change it, or use a number", m.LimitedBy)
		}
		return 0, fmt.Errorf("--nproc-per-node gpu: no GPU is visible on this machine; use a number, or auto or cpu")
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("--nproc-per-node %q: use a number, gpu, cpu or auto", text)
	}
	return n, nil
}
