package taskservices

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// remembered has plans that a test keeps in memory.
type remembered struct {
	mu   sync.Mutex
	runs map[runkey.Run]Run
}

func (p *remembered) Run(k runkey.Run) (Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[k]
	if !ok {
		return Run{}, errors.New("no such run")
	}
	return r, nil
}

func (p *remembered) Note(k runkey.Run, change func(*Notes)) (Run, error) {
	r, err := p.Run(k)
	if err != nil {
		return Run{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r = p.runs[k]
	change(&r.Notes)
	p.runs[k] = r
	return r, nil
}

// change changes a run the way its host does.
func (p *remembered) change(k runkey.Run, change func(*Run)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[k]
	change(&r)
	p.runs[k] = r
}

var servedRun = runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}

// plansOf returns generation 1 of the run, with two workers.
func plansOf(s *spec.RunSpec) *remembered {
	if s.Tasks == nil {
		s.Tasks = []spec.TaskGroup{{Type: "worker", Count: new(2), Command: []string{"x"}}}
	}
	return &remembered{runs: map[runkey.Run]Run{
		servedRun: {Key: servedRun, Generation: 1, Spec: s.WithDefaults()},
	}}
}

func by(task string) runkey.Task {
	return runkey.Task{Run: servedRun, Generation: 1, Task: task}
}

// newServices returns the services of a host with these plans, until the test ends.
func newServices(t *testing.T, c Config) *Services {
	t.Helper()
	if c.Plans == nil {
		c.Plans = plansOf(&spec.RunSpec{})
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Host, c.StateDir = "host-a", t.TempDir()
	s, err := New(c)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}
