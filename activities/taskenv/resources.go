package taskenv

import (
	"maps"
	"strconv"
)

// resources shows a process its share of the host.
func resources(env map[string]string, p Process) {
	own := false // the spec's env says itself what the task sees
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
