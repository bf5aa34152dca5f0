package activities

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A host refuses more tasks than it has slots, unless the tasks belong to its only run and it
// may be oversubscribed.
func TestClaimSlots(t *testing.T) {
	other := runkey.Run{Namespace: "default", WorkflowID: "other", RunID: "1"}
	tasks := (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(3)}}}).TaskList()
	for name, test := range map[string]struct {
		slots         int
		oversubscribe bool
		others        []string
		refusal       string
	}{
		"room":                {slots: 4, others: []string{"worker-0"}},
		"no room":             {slots: 2, refusal: "host a has 2 of 2 slots free, the run needs 3"},
		"no bound":            {slots: 0, others: []string{"worker-0"}},
		"oversubscribed":      {slots: 2, oversubscribe: true},
		"others are there":    {slots: 3, oversubscribe: true, others: []string{"worker-0"}, refusal: "host a has 2 of 3 slots free, the run needs 3"},
		"room beside another": {slots: 4, oversubscribe: true, others: []string{"worker-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := NewHost(Config{Name: "a", StateDir: t.TempDir(), Slots: test.slots, Oversubscribe: test.oversubscribe, Log: zap.NewNop()})
			require.NoError(t, err)
			_, err = h.plans.update(other, func(*plan) (*plan, error) {
				return &plan{Run: other, Spec: &spec.RunSpec{}, Tasks: test.others}, nil
			})
			require.NoError(t, err)
			err = h.reservations.claimSlots(servedRun, 0, tasks)
			if test.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.refusal)
		})
	}
}
