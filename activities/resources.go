package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// inventory returns this host's resources for a run. If the fleet granted the run GPUs, it includes
// only those GPUs.
func (c *core) inventory(granted []string) (resources.Inventory, error) {
	inv, err := resources.Read(c.environ(), c.Process)
	if len(granted) > 0 {
		inv.GPUs.Visible = granted
	}
	return inv, err
}

// checkResources returns a problem for each GPU or CPU request in the spec that this host cannot
// satisfy. Tasks of the run that were reserved separately on this host share its resources.
func (c *checks) checkResources(run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task) ([]spec.Problem, error) {
	if !resources.Wanted(in.Spec) {
		return nil, nil
	}
	inv, err := c.inventory(in.Devices)
	if err != nil {
		return nil, err
	}
	tasks = slices.Clone(tasks)
	if p, err := c.plans.get(run); err == nil && p.Generation == in.Generation {
		for _, t := range p.tasksHere() {
			if !slices.ContainsFunc(tasks, func(o spec.Task) bool { return o.Name() == t.Name() }) {
				tasks = append(tasks, t)
			}
		}
	}
	_, problems := inv.Split(in.Spec, c.Name, tasks, nil)
	return problems, nil
}

// checkResourcesOf returns the resources that this host lacks for a task that is added to a live
// run.
func (c *checks) checkResourcesOf(p *plan, t spec.Task) ([]spec.Problem, error) {
	if !resources.Wanted(p.Spec) {
		return nil, nil
	}
	inv, err := c.inventory(p.Devices)
	if err != nil {
		return nil, err
	}
	here, added := p.withTask(t)
	_, problems := inv.Split(p.Spec, c.Name, here, added)
	return problems, nil
}

// resources adds a task's devices to p, and returns the task's CPUs.
func (l *taskLease) resources(t spec.Task, p *taskenv.Process) ([]int, error) {
	if !resources.Wanted(l.plan.Spec) {
		return nil, nil
	}
	inv, err := l.inventory(l.plan.Devices)
	if err != nil {
		return nil, err
	}
	here, added := l.plan.withTask(t)
	shares, problems := inv.Split(l.plan.Spec, l.Name, here, added)
	if len(problems) > 0 {
		return nil, &spec.InvalidSpecError{Problems: problems}
	}
	share := shares[t.Name()]
	if share.Devices != nil {
		p.Devices = inv.GPUs.Variables(share.Devices)
	}
	p.CPUs = len(share.CPUs)
	return share.CPUs, nil
}

// withTask returns the spec's tasks on this host and, separately, t if it is not among them.
func (p *plan) withTask(t spec.Task) (here, added []spec.Task) {
	here = p.tasksHere()
	if !slices.ContainsFunc(here, func(o spec.Task) bool { return o.Name() == t.Name() }) {
		added = append(added, t)
	}
	return here, added
}

// tasksHere returns the spec's tasks on this host, ordered by local rank or, while local ranks are
// unknown, by rank.
func (p *plan) tasksHere() []spec.Task {
	localRanks := map[string]int{}
	for _, m := range p.Cluster.Members {
		localRanks[m.Name()] = m.LocalRank
	}
	var tasks []spec.Task
	for _, name := range p.Tasks {
		if t, ok := p.Spec.Task(name); ok {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b spec.Task) int {
		return cmp.Or(cmp.Compare(localRanks[a.Name()], localRanks[b.Name()]), cmp.Compare(a.Rank, b.Rank))
	})
	return tasks
}

// limitsOf returns a task's limits in the form that the supervisor accepts.
func limitsOf(s *spec.RunSpec, t spec.Task) supervisor.Limits {
	l := s.LimitsOf(t)
	out := supervisor.Limits{Memory: l.MemoryBytes()}
	if l.CPUs != nil {
		out.CPUs = *l.CPUs
	}
	if l.PIDs != nil {
		out.PIDs = *l.PIDs
	}
	if l.NoFile != nil {
		out.Rlimits = append(out.Rlimits, supervisor.Rlimit{Resource: unix.RLIMIT_NOFILE, Value: uint64(*l.NoFile)})
	}
	if n, ok := l.CoreBytes(); ok {
		out.Rlimits = append(out.Rlimits, supervisor.Rlimit{Resource: unix.RLIMIT_CORE, Value: n})
	}
	return out
}

// controllersPatience limits the request for the available controllers, which the supervisor
// answers from memory.
const controllersPatience = 10 * time.Second

// checkLimits returns the task limits that this host cannot enforce.
func (c *checks) checkLimits(s *spec.RunSpec, t spec.Task) (problems []spec.Problem) {
	limits := limitsOf(s, t)
	if names := limits.Controllers(); len(names) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), controllersPatience)
		defer cancel()
		there, err := c.Supervisor.Controllers(ctx)
		if err != nil {
			return nil // the supervisor has exited, and the next request to it fails
		}
		for _, name := range names {
			if !slices.Contains(there.Controllers, name) {
				problems = append(problems, spec.Problem{
					Path:    "limits." + limitNames[name],
					Message: fmt.Sprintf("host %s cannot enforce it: %s", c.Name, there.Why), Remedy: "or omit the limit",
				})
			}
		}
	}
	for _, l := range limits.Rlimits {
		var mine unix.Rlimit
		if err := unix.Prlimit(c.Process, l.Resource, nil, &mine); err == nil && l.Value > mine.Max {
			field := rlimitNames[l.Resource]
			problems = append(problems, spec.Problem{
				Path:    "limits." + field.name,
				Message: fmt.Sprintf("the host worker on host %s may itself have at most %d", c.Name, mine.Max),
				Remedy:  "raise its hard limit (" + field.raise + "), or ask for less",
			})
		}
	}
	return problems
}

// limitNames maps a controller to the field of limits that needs it.
var limitNames = map[string]string{"cpu": "cpus", "memory": "memory", "pids": "pids"}

var rlimitNames = map[int]struct{ name, raise string }{
	unix.RLIMIT_NOFILE: {"nofile", "ulimit -Hn, or LimitNOFILE of its service"},
	unix.RLIMIT_CORE:   {"core", "ulimit -Hc, or LimitCORE of its service"},
}
