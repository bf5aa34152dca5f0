package command

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter/hosts/hostlist"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// otherHosts is what the command line says of a run that is not on this machine alone.
type otherHosts struct {
	hosts []hostlist.Host
	// flag is what named them.
	flag string
	// count is the number of tasks. 0: one for each slot, or as the spec has it.
	count int
	// perHost is how many each host takes, in the words of --nproc-per-node. Empty: as many
	// as it has slots.
	perHost       string
	oversubscribe bool
	// spread reports whether the tasks are dealt out over the hosts, one by one.
	spread bool
	// inSpec reports whether the spec, or --task, says how many tasks there are.
	inSpec bool
	// placed reports whether every task has its host.
	placed bool
}

// refuseOthers refuses hosts for a run that finds its host workers on a queue.
func (f *specFlags) refuseOthers(what string) error {
	if f.others == nil {
		return nil
	}
	return usagef("%s: %s finds its hosts on the queue and starts none; leave it out, and name tasks of a host with --task TYPE=HOST:PORT, or use run, which reaches hosts by ssh", f.others.flag, what)
}

// hostList returns the hosts of -H or --hostfile. None: neither was given.
func (f *specFlags) hostList() (hosts []hostlist.Host, flag string, err error) {
	switch {
	case f.given("host") && f.given("hostfile"):
		return nil, "", fmt.Errorf("-H and --hostfile both say which hosts there are; give one of them")
	case f.given("host"):
		flag = "-H " + f.hosts
		hosts, err = hostlist.Parse(f.hosts)
	case f.given("hostfile"):
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
		return nil, "", fmt.Errorf("find the name of this machine: %w", err)
	}
	hosts = hostlist.Merge(hosts, own, isThisMachine)
	for i := range hosts {
		if h := &hosts[i]; h.Here && h.Slots == 0 {
			h.Slots = runtime.NumCPU() // as Open MPI has it
		}
	}
	return hosts, flag, nil
}

// place gives each task of the spec its host. machines are what the hosts have, by name;
// where they were not asked yet, and have to be, nothing is placed.
func (o *otherHosts) place(s *spec.RunSpec, machines map[string]machine) error {
	hosts := append([]hostlist.Host{}, o.hosts...)
	for i := range hosts {
		h := &hosts[i]
		m, known := machines[h.Name]
		if h.Here {
			m, known = here(), true
		}
		asked := h.Slots == 0
		switch o.perHost {
		case "auto", "cpu", "gpu":
			asked = true
		}
		if asked && !known {
			return nil
		}
		if h.Slots == 0 {
			h.Slots = m.cpus
		}
		if o.perHost != "" {
			n, err := parseNProc(o.perHost, m)
			if err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			if *h, err = hostlist.Limit(*h, n, o.oversubscribe); err != nil {
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
	if err := hostlist.Fill(s.Tasks, hosts, o.spread, o.oversubscribe); err != nil {
		return err
	}
	o.placed = true
	return s.Validate()
}

// prepareElsewhere completes a spec for a run whose hosts are not this machine alone.
func prepareElsewhere(s *spec.RunSpec, o runOptions) error {
	if strings.TrimSpace(o.launch.agent) == "" {
		return usagef("--launch-agent is empty; give a program that is called as ssh is")
	}
	if s.Hosts.PerHost != nil && o.others.perHost == "" {
		o.others.perHost = strconv.Itoa(*s.Hosts.PerHost)
	}
	o.others.spread = s.Hosts.Strategy == spec.StrategySpread
	s.Hosts.PerHost, s.Hosts.Strategy = nil, "" // the addresses say it
	if what := elsewhere(s); what != "" {
		return usagef("%s: %s says which hosts there are, and takes as many tasks there as they have slots; leave one of the two out", what, o.others.flag)
	}
	if s.OnDisconnect == "" {
		// A connection that is lost is not made again, also of a single host.
		s.OnDisconnect = spec.OnDisconnectStop(time.Duration(spec.DefaultStopAfter))
	}
	return o.place(s, nil)
}

// place gives each task its host, as far as that is known, and refuses what is wrong with
// it.
func (o runOptions) place(s *spec.RunSpec, machines map[string]machine) error {
	if err := o.others.place(s, machines); err != nil {
		return usagef("%s", err)
	}
	if _, ok := s.Task(o.stdin); !ok && o.stdin != "" && o.others.placed {
		return usagef("--stdin %s: give none or a task; the run has %s", o.stdin, taskNames(s))
	}
	if t, ok := s.Task(o.foreground); ok {
		host, _, _ := spec.SplitAddress(t.Address) // none: the slots of some host are not known
		if !isThisMachine(host) {
			return usagef("--foreground %s: the task is on another host, which has no terminal to give; leave it out, or have the task on this machine", o.foreground)
		}
	}
	return nil
}

// elsewhere returns the hosts that are other machines.
func (o *otherHosts) elsewhere() []hostlist.Host {
	return slices.DeleteFunc(slices.Clone(o.hosts), func(h hostlist.Host) bool { return h.Here })
}

// hasThisMachine reports whether this machine is one of the hosts.
func (o *otherHosts) hasThisMachine() bool {
	return o != nil && len(o.elsewhere()) < len(o.hosts)
}

// isThisMachine reports whether a host's name means the machine we are on.
func isThisMachine(name string) bool {
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
