package workers

import (
	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// guard returns the guard of this host.
func (o Options) guard() *guard.Guard { return guard.New(o.Policy, o.Audit, o.StateDir) }

// CheckPolicy returns why the policy or the audit log cannot be used.
func (o Options) CheckPolicy() error { return o.guard().Check() }

// TaskDecision is the decision of a policy about a task.
type TaskDecision struct {
	Task string `json:"task"`
	policy.Decision
}

// DecideTasks returns the decision that a host worker on this machine, of this user and with
// that policy, would make about each task of a run that was signed by one of those principals.
func DecideTasks(file string, s *spec.RunSpec, signers []string) ([]TaskDecision, error) {
	g := guard.New(file, "", "")
	if err := g.Check(); err != nil || s == nil {
		return nil, err
	}
	var all []TaskDecision
	ships := ""
	if s.Ships() {
		ships = "/ship" // any path will do
	}
	for _, t := range s.TaskList() {
		all = append(all, TaskDecision{t.Name(), g.Decide(activities.PolicyRequest(s, t, ships, signers))})
	}
	return all, nil
}
