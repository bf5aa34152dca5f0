package specs

import (
	"fmt"
	"os"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// CheckResources refuses devices and CPUs that this machine lacks. Otherwise, its host worker
// would refuse them only after the run has started.
func CheckResources(s *spec.RunSpec, f *SpecFlags) error {
	if !resources.Wanted(s) {
		return nil
	}
	inventory, err := resources.Read(os.Environ(), 0)
	if err != nil {
		return err
	}
	own, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find this machine's name: %w", err)
	}
	_, problems := inventory.Split(s, own, s.TaskList(), nil)
	if len(problems) == 0 {
		return nil
	}
	e := &cli.UsageError{}
	for _, p := range problems {
		e.Problems = append(e.Problems, f.inFlags(p, false).String())
	}
	return e
}

// InThisDirectory sets the processes' directory to the current directory if the spec does not
// name one.
func InThisDirectory(s *spec.RunSpec) error {
	if s.Dir != "" || s.Ships() {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return cli.Usagef("there is no current directory (%s); choose one with --dir", err)
	}
	if err := cli.CheckPath("the current directory", dir, "choose another with --dir"); err != nil {
		return err
	}
	s.Dir = dir
	return nil
}

// Elsewhere returns the field of a spec that requires more hosts than this machine, or chooses
// among them.
func Elsewhere(s *spec.RunSpec) string {
	h := s.Hosts
	_, most := h.Count.Bounds()
	switch {
	case most > 1:
		return fmt.Sprintf("hosts.count (or --nnodes) is %s", h.Count)
	case h.PerHost != nil && *h.PerHost < len(s.TaskList()):
		return fmt.Sprintf("hosts.per_host is %d, but there are %d tasks", *h.PerHost, len(s.TaskList()))
	case len(h.Select) > 0:
		return "hosts.select selects hosts"
	}
	return ""
}
