package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Remaining processes of a run are always stopped with the signal and grace of their type: a
// checkpoint may depend on it.
func TestWhatIsLeftIsStoppedAsItsTypeIs(t *testing.T) {
	long := spec.Duration(5 * time.Minute)
	s := (&spec.RunSpec{Tasks: []spec.TaskGroup{
		{Type: "worker", Count: new(2)}, {Type: "ps", Stop: spec.Stop{Signal: "SIGUSR1", Grace: &long}},
	}}).WithDefaults()
	usual := supervisor.Stop{Signal: int(unix.SIGTERM), Grace: s.Stop.Grace.Std()}
	own := supervisor.Stop{Signal: int(unix.SIGUSR1), Grace: 5 * time.Minute}
	want := supervisor.Stops{Stop: usual, Tasks: map[string]supervisor.Stop{"ps-0": own, "ps-7": own}}
	p := &plan{Run: servedRun, Spec: s, Tasks: []string{"worker-0", "ps-0"}, Added: map[string]addedTask{"ps-7": {Task: spec.Task{Type: "ps", Index: 7}}}}

	api := &stopped{}
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: api, Server: &describes{}, Log: zap.NewNop()})
	require.NoError(t, err)
	_, err = h.plans.update(servedRun, func(*plan) (*plan, error) { return p, nil })
	require.NoError(t, err)

	require.NoError(t, h.watch.abandon(p, "for a test", nil))
	assert.Equal(t, want, api.as)

	api.processes = []supervisor.Process{living("ps-0", 0, 0)}
	require.NoError(t, h.reservations.endOlder(t.Context(), servedRun, hostapi.ReserveInput{Spec: s, Generation: 1}))
	require.Len(t, api.stops, 1)
	assert.Equal(t, own, supervisor.Stop{Signal: api.stops[0].Signal, Grace: api.stops[0].Grace})

	none, err := (*plan)(nil).stops()
	require.NoError(t, err)
	assert.Equal(t, supervisor.Stops{Stop: supervisor.Stop{Signal: int(unix.SIGTERM), Grace: defaultGrace}}, none)
}
