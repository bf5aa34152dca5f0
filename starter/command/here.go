package command

import (
	"fmt"
	"os"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// prepareHere completes a spec for a run on this machine, and refuses tasks of
// other machines: nobody but us polls its private queues, so they could only
// time out.
func prepareHere(s *spec.RunSpec, o runOptions) error {
	if err := inThisDirectory(s); err != nil {
		return err
	}
	switch {
	case o.meeting != nil:
		return nil
	case o.others != nil:
		return prepareElsewhere(s, o)
	}
	own, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find the name of this machine: %w", err)
	}
	e := &usageError{}
	for i, g := range s.Tasks {
		for j, address := range g.Addresses {
			host, _, err := spec.SplitAddress(address)
			if err != nil || spec.IsLoopback(host) || host == own {
				continue
			}
			path := fmt.Sprintf("tasks[%d].addresses[%d]", i, j)
			if isThisMachine(host) {
				e.problems = append(e.problems, fmt.Sprintf("%s: %q is this machine by another name; write localhost or %s", path, host, own))
				continue
			}
			e.problems = append(e.problems, fmt.Sprintf("%s: %q is not this machine, where run starts everything; "+
				"start a `clusterrun worker --host-name %s` there, and use `clusterrun submit` or run --remote", path, host, host))
		}
	}
	if what := elsewhere(s); what != "" {
		e.problems = append(e.problems, what+", but run starts everything on this machine unless -H names hosts; use `clusterrun submit` or run --remote")
	}
	if len(e.problems) > 0 {
		return e
	}
	return nil
}

// checkResources refuses devices and CPUs that this machine does not have. Its host worker would
// do so, when the run has started.
func checkResources(s *spec.RunSpec, f *specFlags) error {
	if !resources.Wanted(s) {
		return nil
	}
	inventory, err := resources.Read(os.Environ())
	if err != nil {
		return err
	}
	own, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find the name of this machine: %w", err)
	}
	_, problems := inventory.Split(s, own, s.TaskList(), nil)
	if len(problems) == 0 {
		return nil
	}
	e := &usageError{}
	for _, p := range problems {
		e.problems = append(e.problems, f.inFlags(p, false).String())
	}
	return e
}

// inThisDirectory has the processes of a spec that names no directory run in the current one.
func inThisDirectory(s *spec.RunSpec) error {
	if s.Dir != "" || s.Ships() {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return usagef("there is no current directory (%s); give one with --dir", err)
	}
	if err := checkPath("the current directory", dir, "give another with --dir"); err != nil {
		return err
	}
	s.Dir = dir
	return nil
}

// elsewhere names the field of a spec that wants more hosts than this machine, or chooses
// among them.
func elsewhere(s *spec.RunSpec) string {
	h := s.Hosts
	_, most := h.Count.Bounds()
	switch {
	case most > 1:
		return fmt.Sprintf("hosts.count (or --nnodes) is %s", h.Count)
	case h.PerHost != nil && *h.PerHost < len(s.TaskList()):
		return fmt.Sprintf("hosts.per_host is %d, for %d tasks", *h.PerHost, len(s.TaskList()))
	case len(h.Select) > 0:
		return "hosts.select chooses hosts"
	case len(h.Constraints) > 0:
		return "hosts.constraints choose hosts"
	}
	return ""
}
