package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/barriers"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Since when it is waited means the same for all barriers: from the first arrival on,
// in whatever order the missing are named.
func TestStandingOfABarrierAcrossHosts(t *testing.T) {
	opened := time.Date(2025, 3, 1, 12, 0, 0, 5e8, time.UTC)
	missing := []spec.BarrierMissing{
		{Task: "worker-1", Since: opened.Add(time.Minute)}, // it had arrived, and went away
		{Task: "worker-2", Since: opened},
		{Task: "worker-3", Since: opened.Add(time.Second)},
	}
	got := standingOf(&barriers.BrokenError{Name: "epoch", Round: 4, Missing: missing},
		[]string{"worker-0", "worker-1", "worker-2", "worker-3"}, opened.Add(90*time.Second))
	assert.Equal(t, &taskapi.Standing{
		Name: "epoch", Round: 5, Arrived: []string{"worker-0"}, Missing: []string{"worker-1", "worker-2", "worker-3"},
		Since: "2025-03-01T12:00:00Z", Waited: 90,
	}, got)

	none := standingOf(&barriers.BrokenError{Name: "epoch"}, nil, opened)
	assert.Equal(t, &taskapi.Standing{Name: "epoch", Round: 1, Arrived: []string{}, Missing: []string{}}, none, "nothing is known")
}
