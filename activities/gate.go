package activities

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// signersOf returns the signers of a task of the run.
func (p *plan) signersOf(task string) []string {
	if a, ok := p.Added[task]; ok {
		return a.Signers
	}
	return p.Signers
}

// decide asks the policy about the process of a task, or about a request to it.
func (g *gate) decide(p *plan, t spec.Task, ask policy.Ask) policy.Decision {
	if g.Guard == nil {
		return g.Guard.Decide(policy.Request{}) // avoids the lookups of requestFor
	}
	r := g.requestFor(p.Run, p.Spec, t, p.signersOf(t.Name()))
	r.Ask = ask
	return sameUser(g.Guard.Decide(r), p.As)
}

// denied logs a refusal by the policy and returns the error for it.
func (g *gate) denied(p *plan, e guard.Entry, why string) error {
	g.refused(p.Run, e, why)
	return fmt.Errorf("the policy of host %s does not allow it: %s", g.Name, why)
}

// refused logs a refusal. An error of the audit log does not change the refusal.
func (g *gate) refused(run runkey.Run, e guard.Entry, why string) {
	e.What, e.Why, e.Run, e.Execution = "refused", why, run.WorkflowID, run.RunID
	if err := g.Guard.Log(e); err != nil {
		g.Log.Error("a refusal is not in the audit log", zap.Error(err), zap.String("run", run.WorkflowID), zap.String("why", why))
	}
}

// allowedStart asks the policy at each start of a process, before anything is created for it.
func (l *taskLease) allowedStart(t spec.Task) (policy.Decision, error) {
	if l.Guard != nil {
		l.asked = l.gate.requestFor(l.plan.Run, l.plan.Spec, t, l.plan.signersOf(t.Name()))
	}
	d := sameUser(l.Guard.Decide(l.asked), l.plan.As)
	if !d.Allowed {
		return d, l.gate.denied(l.plan, guard.Entry{Asked: "start", Task: l.key.Task, Command: t.Command, Signers: l.plan.signersOf(l.key.Task)}, d.Reason)
	}
	return d, nil
}

// written logs a start to the audit log, after checking that the program is the one that the
// policy allowed.
func (l *taskLease) written(c supervisor.Command) error {
	if l.Guard == nil {
		return nil
	}
	if l.Guard.HasPolicy() {
		ships := l.ships.shipsTo(l.key.Run, l.plan.Spec)
		if got := known(ships, c.Path); got != l.asked.Program {
			return fmt.Errorf("the policy was asked about %s, but the program is now %s", l.asked.Program, got)
		}
		if got := known(ships, c.Dir); got != l.asked.Directories[0] {
			return fmt.Errorf("the policy was asked about the directory %s, but it is now %s", l.asked.Directories[0], got)
		}
	}
	return l.Guard.Log(guard.Entry{
		What: "start", Signers: l.plan.signersOf(l.key.Task), User: l.allowed.User, Rule: l.allowed.Rule,
		Run: l.key.Run.WorkflowID, Execution: l.key.Run.RunID, Task: l.key.Task, Command: c.Args, Dir: c.Dir,
	})
}

// audited logs that a run stops a task.
func (l *taskLease) audited(reason string) {
	err := l.Guard.Log(guard.Entry{
		What: "stop", Run: l.key.Run.WorkflowID, Execution: l.key.Run.RunID, Task: l.key.Task,
		Signers: l.plan.signersOf(l.key.Task), Why: reason,
	})
	if err != nil {
		l.Log.Error("a stop is not in the audit log", zap.Error(err), zap.String("task", l.key.String()))
	}
}
