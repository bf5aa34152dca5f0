package files

import (
	"context"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// host is a host that serves the run's files.
type host struct {
	name, address string
	client        *hostservice.Client
	// listing is the host's answer, if listed is set, and dir the run's directory on it.
	listing
	listed bool
	dir    string
	// isHere reports whether dir is on this machine.
	isHere bool
	// reading reports whether the host's output is being read, unless there is an error, and read
	// whether it was. The listing then holds the processes with files after that.
	reading, read bool
	follower      *hostservice.Follower // nil if the files are copied
}

// serve adds the hosts that the run names.
func (f *Files) serve(services []spec.HostService) {
	for _, s := range services {
		known := slices.ContainsFunc(f.hosts, func(h *host) bool { return h.address == s.Address })
		if !known {
			f.hosts = append(f.hosts, &host{name: s.Host, address: s.Address, client: hostservice.NewClient(s, f.status.ExecutionID)})
		}
	}
}

// hostNamed returns a host, or nil if it does not serve files.
func (f *Files) hostNamed(ctx context.Context, name string) *host {
	if !f.asked && !f.allHere {
		away := func(p Process) bool { return f.Here(p.Dir) != nil }
		if f.allHere = !slices.ContainsFunc(f.Processes(), away); !f.allHere {
			f.learn(ctx)
		}
	}
	at := slices.IndexFunc(f.hosts, func(h *host) bool { return h.name == name })
	if name == "" || at < 0 {
		return nil
	}
	return f.hosts[at]
}

// list returns the processes with files on the host. It requests them once, unless that fails.
func (h *host) list(ctx context.Context) listing {
	if !h.listed || h.err != nil {
		l, err := h.client.List(ctx)
		h.listed, h.dir, h.listing = true, l.Dir, listing{l.Attempts, err}
	}
	return h.listing
}

// elsewhere lists, in parallel, each host that may hold wanted files, and returns the hosts with
// files that are not on this machine.
func (f *Files) elsewhere(ctx context.Context, want tasklog.Selection) (found []*host) {
	var asked sync.WaitGroup
	for _, h := range f.hosts {
		if !h.reading && !h.isHere && (h.listed || f.mayHave(h, want)) {
			asked.Go(func() {
				h.list(ctx)
				h.isHere = f.hasHere(h)
			})
		}
	}
	asked.Wait()
	for _, h := range f.hosts {
		if h.listed && h.err == nil && !h.isHere && !h.reading {
			found = append(found, h)
		}
	}
	return found
}

// mayHave reports whether a host may have wanted files that are not on this machine. If the group
// has moved, each host may have files of earlier generations.
func (f *Files) mayHave(h *host, want tasklog.Selection) bool {
	if f.status.Generation > 0 {
		return true
	}
	here, reported := true, false
	for _, p := range f.Processes() {
		if p.Host == h.name || p.Host == "" {
			reported, here = true, here && f.Here(p.Dir) == nil
		}
	}
	return (!reported || !here) && slices.ContainsFunc(f.status.Tasks, func(t outcome.TaskStatus) bool {
		return want.HasTask(t.Rank) && (t.Host == h.name || t.Host == "")
	})
}

// hasHere reports whether the host's directory is on this machine. Each process of a task is on
// one host only.
func (f *Files) hasHere(h *host) bool {
	for rank, attempts := range h.attempts {
		for _, n := range attempts {
			if f.Here(tasklog.ProcessDir(h.dir, n, rank)) == nil {
				return true
			}
		}
	}
	return false
}
