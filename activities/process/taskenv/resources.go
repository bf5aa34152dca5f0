package taskenv

import (
	"maps"
	"strconv"
)

// resources sets the variables for a process's share of the host.
func resources(env map[string]string, p Process) {
	own := false // whether the spec's env selects the GPUs
	for name := range p.Devices {
		_, set := p.Env[name]
		own = own || set
	}
	if !own {
		maps.Copy(env, p.Devices)
	}
	if p.CPUs > 0 {
		setDefault(env, "OMP_NUM_THREADS", strconv.Itoa(p.CPUs))
	}
}
