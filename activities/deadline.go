package activities

import (
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// withDeadline returns the plan after starting max_run_time, which counts from the first task
// that is started here. The workflow's own timer starts then, too.
func (h *Host) withDeadline(run runkey.Run) (*plan, error) {
	p, err := h.plans.get(run)
	if err != nil || p.Spec.MaxRunTime == nil || p.Deadline != 0 && p.BootID == proc.BootID() {
		return p, err
	}
	return h.plans.change(run, func(p *plan) error {
		if p.DeadlineWall.IsZero() {
			from := h.now()
			if p.Elapsed > 0 {
				from = p.Reserved // Elapsed includes the time up to then
			}
			p.DeadlineWall = from.Add(p.Spec.MaxRunTime.Std() - p.Elapsed)
		}
		// The clock since boot does not jump, but it restarts with each boot.
		p.Deadline, p.BootID = supervisor.BootNanos()+int64(p.DeadlineWall.Sub(h.now())), proc.BootID()
		return nil
	})
}

// overdue reports whether max_run_time has passed.
func (p *plan) overdue() bool { return p.Deadline != 0 && supervisor.BootNanos() >= p.Deadline }

// killAt returns when the supervisor kills by itself. The workflow's own timer comes first
// while the server is there; this one works during outages.
func (p *plan) killAt() int64 {
	if p.Deadline == 0 {
		return 0
	}
	return p.Deadline + int64(time.Second)
}
