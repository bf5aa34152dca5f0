package activities

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// collectPatience is the maximum time a release waits for the remaining lines to be collected.
const collectPatience = 30 * time.Second

func (p *plan) filters() bool {
	if p.Spec == nil {
		return false
	}
	l := p.Spec.Logs
	return len(l.DuplicateStdoutFilters)+len(l.DuplicateStderrFilters) > 0 && p.runDir() != ""
}

// collect starts collecting a run's lines, unless collection is already in progress or the run does
// not need it. The lines of a released run are already complete.
func (c *collectors) collect(p *plan) {
	if p.Released || !p.filters() {
		return
	}
	prefix, err := spec.ParsePrefix(p.Spec.Logs.Prefix)
	if err != nil {
		c.Log.Warn("lines are not filtered", zap.String("run", p.Run.WorkflowID), zap.Error(err))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byRun[p.Run] != nil {
		return
	}
	if c.byRun == nil {
		c.byRun = map[runkey.Run]*tasklog.Collector{}
	}
	o := tasklog.CollectOptions{
		Stdout: p.Spec.Logs.DuplicateStdoutFilters, Stderr: p.Spec.Logs.DuplicateStderrFilters,
		Prefix: func(rank, attempt int) string {
			return prefix.Format(c.lineFields(p.Run, rank, attempt))
		},
		Select: func(rank int) bool {
			now, err := c.plans.get(p.Run)
			return err == nil && now.here(rank)
		},
		As: p.User,
		OnError: func(err error) {
			c.Log.Warn("filtered lines", zap.String("run", p.Run.WorkflowID), zap.Error(err))
		},
	}
	if p.Cluster.Hosts > 1 && p.Spec.Logs.Dir != "" {
		// Hosts may share the directory, so each uses its own name.
		o.Name = c.Name
	}
	c.byRun[p.Run] = tasklog.Collect(p.runDir(), o)
}

// collectRest collects a run's remaining lines after all of its processes have exited, or all lines
// if this host worker has not seen any of the processes.
func (c *collectors) collectRest(ctx context.Context, p *plan) {
	c.collect(p)
	ctx, cancel := context.WithTimeout(ctx, collectPatience)
	defer cancel()
	if err := c.endCollecting(ctx, p.Run); err != nil {
		c.Log.Warn("filtered lines are delayed", zap.String("run", p.Run.WorkflowID), zap.Error(err))
	}
}

// endCollecting waits until a run's collection is complete. If ctx is done first, the collection
// continues, and the caller can retry.
func (c *collectors) endCollecting(ctx context.Context, run runkey.Run) error {
	c.mu.Lock()
	one := c.byRun[run]
	c.mu.Unlock()
	if one == nil {
		return nil
	}
	if err := one.Stop(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byRun[run] == one {
		delete(c.byRun, run)
	}
	return nil
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

// lineFields returns the prefix fields of a process's lines.
func (c *collectors) lineFields(run runkey.Run, rank, attempt int) spec.PrefixFields {
	p, err := c.plans.get(run)
	if err != nil {
		return spec.PrefixFields{Type: "rank", Index: rank, Rank: rank, Attempt: attempt, Host: c.Name}
	}
	return p.prefixFields(p.nameOf(rank), attempt)
}
