package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
)

// cgroups manages the cgroups of an instance's processes.
type cgroups struct {
	dir string // of the instance, or empty
	// controllers are the process cgroups' controllers.
	controllers ControllersReply
	refused     atomic.Bool // the kernel allows cgroups, but not starts in them
	// oom counts the processes that the kernel kills to free memory, for use by processes without
	// their own counter. oomExplained is the number of leaders among them.
	oom          cgroup.OOMCounter
	oomExplained atomic.Int64
}

// newCgroups creates an instance's cgroup, unless cgroups are disabled.
func newCgroups(cfg Config) *cgroups {
	c := &cgroups{oom: cgroup.OwnOOM()}
	if !cfg.NoCgroups {
		c.dir = cgroup.Make(cfg.State.instance)
	}
	c.controllers = newControllers(cgroup.Delegate(c.dir, os.Getpid()))
	if c.dir != "" {
		if err := cgroup.Record(filepath.Join(cfg.State.dir, cgroupFile), cfg.State.boot, c.dir); err != nil {
			cfg.Log.Warn("The location of the cgroups was not recorded; processes that leave their session may outlive a killed supervisor.", "error", err)
		}
	}
	return c
}

// close removes the instance's cgroup.
func (c *cgroups) close() {
	if c.dir != "" {
		cgroup.Remove(c.dir)
	}
}

// enter creates and opens a process's cgroup, or returns -1.
func (c *cgroups) enter(p *process) (string, int) {
	if c.dir == "" || c.refused.Load() {
		return "", -1
	}
	dir := filepath.Join(c.dir, cgroup.Name(p.task.run.hash, p.Key, p.Number))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", -1 // an existing cgroup may contain an unkillable process
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(dir)
		return "", -1
	}
	return dir, fd
}

// limit limits a cgroup before any process enters it.
func (c *cgroups) limit(dir string, l Limits) error {
	for _, name := range l.Controllers() {
		if dir == "" || !slices.Contains(c.controllers.Controllers, name) {
			return fmt.Errorf("its limits cannot be enforced: its cgroup has no %s controller (%s)", name, c.controllers.Why)
		}
	}
	return cgroup.Limit(dir, l.Memory, l.CPUs, l.PIDs)
}

// oomCount returns the number of OOM kills, excluding those of leaders, because a leader's exit
// shows the kill.
func (c *cgroups) oomCount() int { return c.oom.Count() - int(c.oomExplained.Load()) }

// oomKills returns how many processes the kernel killed to free memory while p ran, and the scope
// for [Exit.OOMScope].
func (c *cgroups) oomKills(p *process) (n int, scope string) {
	if p.cgroup != "" {
		if n, ok := cgroup.OOMKills(p.cgroup); ok {
			return n, "task"
		}
	}
	return max(0, c.oomCount()-p.oomBefore), c.oom.Scope
}

// setOOM records in p's exit that the kernel killed p itself or, while p ran, other processes.
func (c *cgroups) setOOM(p *process, e *Exit, kills int, scope string) {
	if kills == 0 {
		return
	}
	e.OOMKills, e.OOMScope = kills, scope
	switch {
	case e.Reason != ReasonNone || e.Sent:
	case p.limits.Memory > 0 && scope == "task" && e.Code != 0, p.oomFails && e.Code == 0:
		e.Reason, e.Detail = ReasonOOM, p.memoryLimit()
	case e.Code == -int(unix.SIGKILL) && scope != "task":
		c.oomExplained.Add(1)
	}
}

// memoryLimit returns a process's memory limit and peak usage, or "" if there is no limit.
func (p *process) memoryLimit() string {
	if p.limits.Memory == 0 {
		return ""
	}
	text := fmt.Sprintf("limits.memory is %d bytes", p.limits.Memory)
	if peak := strings.TrimSpace(string(cgroup.Read(p.cgroup, "memory.peak"))); peak != "" {
		text += "; it had used " + peak
	}
	return text
}

// Prospect returns the controllers that a supervisor started in this process's cgroup could use, if
// known without changing the cgroup, and the reason if some are missing.
func Prospect() ([]string, error) { return cgroup.Prospect() }

func newControllers(there []string, why error) ControllersReply {
	r := ControllersReply{Controllers: there}
	if why != nil {
		r.Why = why.Error()
	}
	return r
}
