package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
)

// cgroups manages the cgroups of the processes of an instance.
type cgroups struct {
	dir string // of the instance, or empty if there is none
	// controllers are the controllers of the cgroups of processes.
	controllers ControllersReply
	refused     atomic.Bool // the kernel allows cgroups, but no starts in them
}

// newCgroups creates the cgroup of an instance, unless none are wanted.
func newCgroups(cfg Config) *cgroups {
	c := &cgroups{}
	if !cfg.NoCgroups {
		c.dir = cgroup.Make(cfg.State.instance)
	}
	c.controllers = newControllers(cgroup.Delegate(c.dir, os.Getpid()))
	if c.dir != "" {
		if err := cgroup.Record(filepath.Join(cfg.State.dir, cgroupFile), cfg.State.boot, c.dir); err != nil {
			cfg.Log.Warn("The location of the cgroups was not recorded; processes that leave their session may outlive a killed supervisor.", zap.Error(err))
		}
	}
	return c
}

// close removes the cgroup of the instance.
func (c *cgroups) close() {
	if c.dir != "" {
		cgroup.Remove(c.dir)
	}
}

// enter creates the cgroup of a process and opens it; -1 if it gets none.
func (c *cgroups) enter(p *process) (string, int) {
	if c.dir == "" || c.refused.Load() {
		return "", -1
	}
	dir := filepath.Join(c.dir, cgroup.Name(p.task.run.hash, p.Key, p.Number))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", -1 // an existing one may contain something unkillable
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(dir)
		return "", -1
	}
	return dir, fd
}

// limit sets limits on a cgroup that no process is in yet.
func (c *cgroups) limit(dir string, l Limits) error {
	for _, name := range l.Controllers() {
		if dir == "" || !slices.Contains(c.controllers.Controllers, name) {
			return fmt.Errorf("its limits cannot be enforced: its cgroup has no %s controller (%s)", name, c.controllers.Why)
		}
	}
	return cgroup.Limit(dir, l.Memory, l.CPUs, l.PIDs)
}

// oom returns the numbers if the kernel has killed the process, or one of its descendants,
// because they had used all the memory that they may; otherwise it returns "".
func (p *process) oom() string {
	if p.cgroup == "" || p.limits.Memory == 0 {
		return ""
	}
	killed, peak := cgroup.Killed(p.cgroup)
	if killed == 0 {
		return ""
	}
	text := fmt.Sprintf("limits.memory is %d bytes", p.limits.Memory)
	if peak != "" {
		text += ", and it had used " + peak
	}
	if killed == 1 {
		return text + "; the kernel killed 1 process"
	}
	return fmt.Sprintf("%s; the kernel killed %d processes", text, killed)
}

// Prospect returns the controllers that a supervisor started in the cgroup of this process
// could use, if that is known without changing the cgroup.
func Prospect() ControllersReply { return newControllers(cgroup.Prospect()) }

func newControllers(there []string, why string) ControllersReply {
	return ControllersReply{Controllers: there, Why: why}
}
