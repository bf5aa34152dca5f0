package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// stuckTask is a task with a process that survived SIGKILL. Only the kernel can keep such a process
// alive, for example in a driver or a frozen cgroup. The process may still use what the task was
// given.
type stuckTask struct {
	Task    string                `json:"task"`
	Devices []string              `json:"devices,omitempty"`
	Left    []supervisor.Survivor `json:"left"`
}

// stillStuck returns the tasks in Stuck with processes that still exist.
func (p *plan) stillStuck() []stuckTask {
	return slices.DeleteFunc(slices.Clone(p.Stuck), func(s stuckTask) bool {
		return !slices.ContainsFunc(s.Left, supervisor.Survivor.Lives)
	})
}

// held returns what the run holds on this host. stuck lists the processes that hold resources which
// the run itself no longer has. If the run is gone or reserved again, held returns only these
// resources.
func (p *plan) held(gone bool) (tasks int, devices []string, stuck string) {
	if gone = gone || p.Released; !gone {
		if tasks = p.slots(); tasks > 0 {
			devices = p.Devices
		}
	}
	var names []string
	for _, s := range p.stillStuck() {
		if !gone && slices.Contains(p.Tasks, s.Task) {
			continue // its slot is counted
		}
		tasks++
		devices = append(slices.Clip(devices), s.Devices...)
		names = append(names, fmt.Sprintf("%s (pid %d)", s.Task, s.Left[0].PID))
	}
	slices.Sort(devices)
	return tasks, slices.Compact(devices), strings.Join(names, ", ")
}

// noteStuck records the run's tasks with processes that survived SIGKILL. It is called before the
// run returns what these tasks hold.
func (r *reservations) noteStuck(run runkey.Run, processes []supervisor.Process) error {
	if !slices.ContainsFunc(processes, isStuck) {
		return nil
	}
	p, err := r.plans.change(run, func(p *plan) error {
		stuck := p.stillStuck()
		for _, q := range processes {
			if isStuck(q) && !slices.ContainsFunc(stuck, func(s stuckTask) bool { return slices.Contains(s.Left, q.Exit.Survivors()[0]) }) {
				stuck = append(stuck, stuckTask{q.Key.Task, r.devicesOf(p, q.Key.Task), q.Exit.Survivors()})
			}
		}
		p.Stuck = stuck
		return nil
	})
	if err == nil {
		_, _, which := p.held(true)
		r.Log.Error("SIGKILL does not end processes; their slots and GPUs remain reserved until the processes are gone", zap.String("run", run.WorkflowID), zap.String("processes", which))
	}
	return err
}

func isStuck(q supervisor.Process) bool { return len(q.Exit.Survivors()) > 0 }

// devicesOf returns the GPUs of a task.
func (r *reservations) devicesOf(p *plan, task string) []string {
	t, ok := p.task(task)
	if !ok || !resources.Wanted(p.Spec) {
		return nil
	}
	inv, err := r.inventory(p.Devices)
	if err != nil {
		return p.Devices
	}
	here, added := p.withTask(t)
	shares, _ := inv.Split(p.Spec, r.Name, here, added)
	return shares[task].Devices
}

// checkStuck refuses to reserve resources held by processes that survived SIGKILL. The fleet may
// not have been notified of these processes yet.
func (r *reservations) checkStuck(run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task) error {
	for _, p := range r.plans.all() {
		for _, s := range p.stillStuck() {
			again := p.Run == run && slices.ContainsFunc(tasks, func(t spec.Task) bool { return t.Name() == s.Task })
			its := slices.ContainsFunc(s.Devices, func(d string) bool { return slices.Contains(in.Devices, d) })
			if again || its {
				return temporal.NewApplicationErrorWithOptions(
					fmt.Sprintf("host %s: SIGKILL does not end process %d of %s of run %s", r.Name, s.Left[0].PID, s.Task, p.Run.WorkflowID),
					spec.ErrPlacement, temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
			}
		}
	}
	return nil
}

// keepStuck reports whether the plan of a run that has released this host must be kept because
// processes of the run still exist. If these have just exited, keepStuck notifies the fleet.
func (r *reconciler) keepStuck(run runkey.Run) (bool, error) {
	p, err := r.plans.get(run)
	if err != nil || len(p.Stuck) == 0 {
		return false, nil //nolint:nilerr // there is nothing to keep
	}
	stuck := p.stillStuck()
	if p.Released && len(stuck) > 0 {
		return true, nil
	}
	_, err = r.plans.change(run, func(p *plan) error {
		p.Stuck, p.Released = stuck, true
		return nil
	})
	r.rejoin()
	return len(stuck) > 0, err
}

// rejoin reports to the fleet what this host holds.
func (c *core) rejoin() {
	if c.Fleet != nil {
		c.Fleet.Rejoin()
	}
}

// stuckOf records which of a run's processes on this host survived SIGKILL.
func (r *reservations) stuckOf(ctx context.Context, run runkey.Run) error {
	if _, err := r.plans.get(run); err != nil {
		return nil //nolint:nilerr // nothing was reserved
	}
	all, err := r.Supervisor.Processes(ctx, run)
	if err != nil {
		return err
	}
	return r.noteStuck(run, all.Processes)
}
