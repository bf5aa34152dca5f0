package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A host that receives a stop restarts nothing until it receives its clear. The two may arrive
// in any order. A run that the end of its chief has sealed stays sealed.
func TestAHostIsToldOfAStop(t *testing.T) {
	c := newControl(t)
	run := c.host.plans.all()[0].Run
	tell := func(s spec.Stopping) *plan {
		_, err := c.env.ExecuteActivity(c.host.TellStopping, hostapi.TellStoppingInput{Stopping: s})
		require.NoError(t, err)
		p, err := c.host.plans.get(run)
		require.NoError(t, err)
		return p
	}
	p := tell(spec.Stopping{Seq: 1, Stop: true, By: "worker-0"})
	assert.True(t, p.sealed())
	assert.False(t, p.Sealed)
	p = tell(spec.Stopping{Seq: 4})
	assert.False(t, p.sealed())
	p = tell(spec.Stopping{Seq: 3, Stop: true})
	assert.False(t, p.sealed(), "it is older")
	assert.Equal(t, 4, p.Stopping.Seq)
	_, err := c.env.ExecuteActivity(c.host.SealTasks, hostapi.TasksInput{})
	require.NoError(t, err)
	assert.True(t, tell(spec.Stopping{Seq: 5}).sealed())

	_, err = c.env.ExecuteActivity(c.host.TellStopping, hostapi.TellStoppingInput{Group: spec.Group{Generation: 7}, Stopping: spec.Stopping{Seq: 9, Stop: true}})
	require.NoError(t, err)
	assert.Equal(t, 5, tell(spec.Stopping{Seq: 5}).Stopping.Seq, "that was for another generation")
}

// A task that waits to be started again does not come back during a stop.
func TestNobodyComesBackDuringAStop(t *testing.T) {
	failed := []supervisor.Process{{Exit: &supervisor.Exit{Code: 1}}}
	p := &plan{Spec: &spec.RunSpec{AutoRestart: true}}
	assert.True(t, p.comesBack(failed, false))
	p.Stopping = &spec.Stopping{Seq: 1, Stop: true}
	assert.False(t, p.comesBack(failed, false))
	p.Stopping = &spec.Stopping{Seq: 2}
	assert.True(t, p.comesBack(failed, false))
}

// The plan of the next generation starts with the latest message, so that an older one that
// arrives late has no effect.
func TestTheNextPlanKnowsOfAClear(t *testing.T) {
	h := assemble(&core{now: time.Now})
	p := h.reservations.newPlan(servedRun, hostapi.ReserveInput{Generation: 2, Spec: &spec.RunSpec{}, Stopping: &spec.Stopping{Seq: 2}}, nil)
	assert.Equal(t, &spec.Stopping{Seq: 2}, p.Stopping)
	assert.False(t, p.sealed())
}
