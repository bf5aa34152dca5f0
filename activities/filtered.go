package activities

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// filterTakes is the maximum time that a release spends on filtering lines.
const filterTakes = 30 * time.Second

// filterLines writes the files of a run's filtered lines after all of its processes have exited.
func (c *core) filterLines(ctx context.Context, p *plan) {
	if p.Spec == nil || p.Released || p.runDir() == "" {
		return
	}
	l := p.Spec.Logs
	if len(l.DuplicateStdoutFilters)+len(l.DuplicateStderrFilters) == 0 {
		return
	}
	o := tasklog.FilterOptions{Stdout: l.DuplicateStdoutFilters, Stderr: l.DuplicateStderrFilters, Select: p.here}
	if p.Cluster.Hosts > 1 && l.Dir != "" {
		// Hosts may share the directory, so each uses its own name.
		o.Name = c.Name
	}
	ctx, cancel := context.WithTimeout(ctx, filterTakes)
	defer cancel()
	prefix, err := spec.ParsePrefix(l.Prefix)
	if err == nil {
		o.Prefix = func(rank, attempt int) string { return prefix.Format(p.prefixFields(p.nameOf(rank), attempt)) }
		err = p.User.Do(func() error { return tasklog.Filter(ctx, p.runDir(), o) })
	}
	if err != nil {
		c.Log.Warn("lines are not filtered, or only some of them", zap.String("run", p.Run.WorkflowID), zap.Error(err))
	}
}

// here reports whether the task with the given rank runs on this host.
func (p *plan) here(rank int) bool {
	name := p.nameOf(rank)
	_, added := p.Added[name]
	return added || slices.Contains(p.Tasks, name)
}

// nameOf returns the name of the task with the given rank, or an empty string if it does not exist.
func (p *plan) nameOf(rank int) string {
	for name, a := range p.Added {
		if a.Task.Rank == rank {
			return name
		}
	}
	for _, m := range p.Cluster.Members {
		if m.Rank == rank {
			return m.Name()
		}
	}
	return ""
}
