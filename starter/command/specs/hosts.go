package specs

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/hosts/hostlist"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// OtherHosts describes, from the command line, a run that also uses other machines.
type OtherHosts struct {
	hosts []hostlist.Host
	// Flag is the flag that named the hosts.
	Flag string
	// count is the number of tasks. If it is 0, the spec determines the number, or there is one
	// task per slot.
	count int
	// PerHost is the number of tasks per host, in the syntax of --nproc-per-node. If it is
	// empty, each host gets one per slot.
	PerHost string
	// Spread reports whether the tasks are spread over the hosts, one at a time.
	Spread bool
	// inSpec reports whether the spec, or --task, gives the number of tasks.
	inSpec bool
	// Placed reports whether every task has been assigned a host.
	Placed bool
}

// RefuseOthers refuses hosts for a run that finds its host workers on a queue.
func (f *SpecFlags) RefuseOthers(what string) error {
	if f.Others == nil {
		return nil
	}
	return cli.Usagef("%s: %s uses the queue's hosts and does not start any; omit it, and place tasks with --task TYPE=HOST:PORT, or use run, which reaches hosts over ssh", f.Others.Flag, what)
}

// hostList returns the hosts of -H or --hostfile, or none if neither is set.
func (f *SpecFlags) hostList() (hosts []hostlist.Host, flag string, err error) {
	switch {
	case f.Given("host") && f.Given("hostfile"):
		return nil, "", fmt.Errorf("-H and --hostfile both name the hosts; use only one of them")
	case f.Given("host"):
		flag = "-H " + f.hosts
		hosts, err = hostlist.Parse(f.hosts)
	case f.Given("hostfile"):
		flag = "--hostfile " + f.hostfile
		file, openErr := os.Open(f.hostfile)
		if openErr != nil {
			return nil, "", fmt.Errorf("--hostfile: %w", openErr)
		}
		defer file.Close()
		if hosts, err = hostlist.ParseFile(file); err != nil {
			err = fmt.Errorf("%s: %w", flag, err)
		}
	}
	if hosts == nil || err != nil {
		return nil, "", err
	}
	own, err := os.Hostname()
	if err != nil {
		return nil, "", fmt.Errorf("find this machine's name: %w", err)
	}
	hosts = hostlist.Merge(hosts, own, IsThisMachine)
	for i := range hosts {
		if h := &hosts[i]; h.Here && h.Slots == 0 {
			h.Slots = runtime.NumCPU() // like Open MPI
		}
	}
	return hosts, flag, nil
}

// Place assigns a host to each of the spec's tasks. machines maps host names to their resources.
// If a host's resources are needed but unknown, Place does nothing.
func (o *OtherHosts) Place(s *spec.RunSpec, machines map[string]Machine) error {
	hosts := append([]hostlist.Host{}, o.hosts...)
	for i := range hosts {
		h := &hosts[i]
		m, known := machines[h.Name]
		if h.Here {
			m, known = LocalMachine(), true
		}
		asked := h.Slots == 0
		switch o.PerHost {
		case "auto", "cpu", "gpu":
			asked = true
		}
		if asked && !known {
			return nil
		}
		h.Slots = cmp.Or(h.Slots, m.Cpus)
		if o.PerHost != "" {
			n, err := ParseNProc(o.PerHost, m)
			if err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			if *h, err = hostlist.Limit(*h, n); err != nil {
				return err
			}
		}
	}
	n, _ := hostlist.Slots(hosts)
	if o.count > 0 {
		n = o.count
	}
	if !o.inSpec {
		s.Tasks[0].Count, s.Tasks[0].Addresses = &n, nil
	}
	if err := hostlist.Fill(s.Tasks, hosts, o.Spread); err != nil {
		return err
	}
	o.Placed = true
	return s.Validate()
}

// Elsewhere returns the hosts that are other machines.
func (o *OtherHosts) Elsewhere() []hostlist.Host {
	return slices.DeleteFunc(slices.Clone(o.hosts), func(h hostlist.Host) bool { return h.Here })
}

// HasThisMachine reports whether this machine is one of the hosts.
func (o *OtherHosts) HasThisMachine() bool {
	return o != nil && len(o.Elsewhere()) < len(o.hosts)
}

// IsThisMachine reports whether a host name refers to this machine.
func IsThisMachine(name string) bool {
	if spec.IsLoopback(name) {
		return true
	}
	if own, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(own, ".")
		if name == own || name == short {
			return true
		}
	}
	return remotehosts.IsOwnAddress(name)
}
