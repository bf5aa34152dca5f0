package workers

import (
	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (o Options) guard() *guard.Guard { return guard.New(o.Policy, o.Audit, o.StateDir) }

// CheckPolicy returns why the policy or the audit log cannot be used.
func (o Options) CheckPolicy() error { return o.guard().Check() }

// TaskDecision is a policy's decision about a task.
type TaskDecision struct {
	Task string `json:"task"`
	policy.Decision
}

// Decisions contains a policy's decisions about a run.
type Decisions struct {
	Tasks []TaskDecision `json:"tasks"`
	// Notify is nil for a run without a webhook.
	Notify *policy.Decision `json:"notify,omitempty"`
}

// DecideRun returns the decisions about a run signed by one of the signers that this user's host
// worker on this machine would make with the given policy. s may be nil.
func DecideRun(file string, s *spec.RunSpec, signers []string) (d Decisions, err error) {
	d = Decisions{Tasks: []TaskDecision{}}
	g := guard.New(file, "", "")
	if err := g.Check(); err != nil || s == nil {
		return d, err
	}
	ships := ""
	if s.Ships() {
		ships = "/ship" // any path will do
	}
	for _, t := range s.TaskList() {
		d.Tasks = append(d.Tasks, TaskDecision{t.Name(), g.Decide(activities.PolicyRequest(s, t, ships, signers))})
	}
	if s.Notify != (spec.Notification{}) {
		d.Notify = new(activities.DecideNotice(g, s.Notify, signers))
	}
	return d, nil
}
