package runrecord

import (
	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// Account is everything known about a run.
type Account struct {
	Status *starter.Status `json:"status"`
	// Spec is the run's spec, or nil if it cannot be read.
	Spec *spec.RunSpec `json:"spec,omitempty"`
	// Sweep is set for a sweep; Spec is then the spec of its trials.
	Sweep  *sweep.Spec `json:"sweep,omitempty"`
	Phases []Phase     `json:"phases,omitempty"`
	// Source is the run's source code, or nil if unknown.
	Source *sourcecode.Source `json:"source,omitempty"`
	// Tasks are in the order of the status.
	Tasks []Task `json:"tasks"`
	// Keys lists the IDs of the encryption keys of payloads that are still encoded.
	Keys []string `json:"keys,omitempty"`
	// Metrics are what tasks have reported over time. An archive stores them in a separate file.
	Metrics []MetricHistory `json:"-"`
}

// Task is the host's record of a task's last process.
type Task struct {
	Name string `json:"name"`
	// Start is nil if the process's log directory cannot be read.
	Start *tasklog.Start `json:"start,omitempty"`
}

// New returns a run's account.
func New(s *starter.Status, started *spec.RunSpec, histories []*historypb.History) *Account {
	a := &Account{Status: s, Phases: phases(s, histories), Tasks: []Task{}, Keys: keysOf(histories), Source: sourceOf(histories)}
	if started != nil {
		own := *started
		own.Signature, own.Ship.From = nil, nil // useless for another run, and a key to this run's files
		a.Spec = &own
	}
	for _, t := range s.Tasks {
		task := Task{Name: t.Name}
		if t.LogDir != "" {
			task.Start = tasklog.ReadStart(t.LogDir)
		}
		a.Tasks = append(a.Tasks, task)
	}
	return a
}
