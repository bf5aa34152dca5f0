package specs

import (
	"fmt"
	"strconv"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// applyNodes reads --nnodes and returns the maximum number of hosts. named is the number of
// hosts that other flags name.
func (f *SpecFlags) applyNodes(s *spec.RunSpec, named int) (most int, err error) {
	count := spec.HostCount(f.nnodes)
	least, most := count.Bounds()
	switch {
	case most < 1 || least < 1 || least > most:
		return 0, fmt.Errorf("--nnodes %q: use a number of hosts, such as 4, or MIN:MAX, such as 2:4", f.nnodes)
	case named > 0 && (least != named || most != named) && most > 1:
		return 0, fmt.Errorf("--nnodes %s does not match the %d hosts that -H or --hostfile names; make them match, or omit -H and --hostfile and use `clusterrun submit` or `clusterrun run --remote`", f.nnodes, named)
	case named > 0 || most == 1:
		return most, nil
	case f.Given("hosts") && f.Flags.Lookup("hosts").Value.String() != f.nnodes:
		return 0, fmt.Errorf("--nnodes %s and --hosts %s contradict each other; use only one of them", f.nnodes, f.Flags.Lookup("hosts").Value)
	}
	if least == most {
		count = spec.HostCount(strconv.Itoa(most))
	}
	s.Hosts.Count = count
	return most, nil
}

// countOnNodes is like count for a run with a given number of fleet hosts.
func (f *SpecFlags) countOnNodes(s *spec.RunSpec, most int) (*int, error) {
	each := 0
	if f.Given("nproc-per-node") {
		var err error
		if each, err = strconv.Atoi(f.nprocPerNode); err != nil {
			return nil, fmt.Errorf("--nproc-per-node %s: a queue's hosts may differ; use a number with --nnodes %s", f.nprocPerNode, f.nnodes)
		}
		s.Hosts.PerHost = &each
	}
	switch {
	case f.Given("np") && each > 0 && f.np != each*most:
		return nil, fmt.Errorf("-n %d and --nproc-per-node %d on %d hosts contradict each other; use only one of them", f.np, each, most)
	case f.Given("np"):
		return &f.np, nil
	case f.Given("nproc-per-node"):
		return new(each * most), nil
	case len(s.Tasks) == 0 && !f.Given("task"):
		return &most, nil
	}
	return nil, nil
}
