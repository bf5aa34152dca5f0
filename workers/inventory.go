package workers

import (
	"cmp"
	"os"
	"runtime"
	"strconv"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// inventory returns this host's resources, from the options or as detected.
func (s *side) inventory(files *hostservice.Server) fleet.Host {
	h := fleet.Host{
		Name: s.Host, Instance: s.supervisor.Instance(), Boot: proc.BootID(), Version: spec.Version,
		Address: cmp.Or(s.Advertise, s.Host), Slots: s.Slots, Oversubscribe: s.Oversubscribe, CPUs: runtime.GOMAXPROCS(0), Memory: resources.Memory(), Role: string(s.Role),
	}
	if v := s.supervisor.Version(); v != h.Version {
		h.Supervisor = v
	}
	if files != nil {
		h.Store = files.DescribeStore()
		h.Store.Host = "" // 2,000 hosts of a fleet must fit into a payload
	}
	gpus := resources.ReadGPUs(os.Environ())
	models := gpus.Models()
	if s.GPUs != nil {
		models = make([]string, *s.GPUs)
	}
	for i, model := range models {
		g := fleet.GPU{Model: model}
		if i < len(gpus.Visible) && gpus.Visible[i] != strconv.Itoa(i) {
			g.Name = gpus.Visible[i]
		}
		h.GPUs = append(h.GPUs, g)
	}
	return h
}
