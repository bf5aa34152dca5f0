package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// limitsOf returns the limits of a task in the form that the supervisor accepts.
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

// controllersPatience bounds the request for the available controllers, which the supervisor
// answers from memory.
const controllersPatience = 10 * time.Second

// checkLimits returns the limits of a task that this host cannot enforce.
func (c *checks) checkLimits(s *spec.RunSpec, t spec.Task) (problems []spec.Problem) {
	limits := limitsOf(s, t)
	if names := limits.Controllers(); len(names) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), controllersPatience)
		defer cancel()
		there, err := c.Supervisor.Controllers(ctx)
		if err != nil {
			return nil // the supervisor is gone, and the next request to it fails
		}
		for _, name := range names {
			if !slices.Contains(there.Controllers, name) {
				problems = append(problems, spec.Problem{
					Path:    "limits." + limitNames[name],
					Message: fmt.Sprintf("host %s cannot enforce it: %s", c.Name, there.Why), Remedy: "or leave the limit out",
				})
			}
		}
	}
	for _, l := range limits.Rlimits {
		var mine unix.Rlimit
		if err := unix.Getrlimit(l.Resource, &mine); err == nil && l.Value > mine.Max {
			field := rlimitNames[l.Resource]
			problems = append(problems, spec.Problem{
				Path:    "limits." + field.name,
				Message: fmt.Sprintf("on host %s the host worker itself may have %d at most", c.Name, mine.Max),
				Remedy:  "raise its hard limit (" + field.raise + "), or ask for less",
			})
		}
	}
	return problems
}

// limitNames has the fields of limits by the controllers that they need.
var limitNames = map[string]string{"cpu": "cpus", "memory": "memory", "pids": "pids"}

var rlimitNames = map[int]struct{ name, raise string }{
	unix.RLIMIT_NOFILE: {"nofile", "ulimit -Hn, or LimitNOFILE of its service"},
	unix.RLIMIT_CORE:   {"core", "ulimit -Hc, or LimitCORE of its service"},
}
