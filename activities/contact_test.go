package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskenv"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Only an answer of the server about the task is contact. The SDK returns a
// DeadlineExceeded of its own when connections are refused.
func TestContactIsAnAnswer(t *testing.T) {
	for _, err := range []error{nil, temporal.NewCanceledError(), activity.ErrActivityPaused, activity.ErrActivityReset} {
		assert.True(t, isContact(err), "%v", err)
	}
	for _, err := range []error{
		serviceerror.NewDeadlineExceeded("connection refused"), serviceerror.NewUnavailable("away"), context.DeadlineExceeded,
		context.Canceled, serviceerror.NewPermissionDenied("who are you", ""), serviceerror.NewResourceExhausted(0, "later"),
		serviceerror.NewInternal("oops"), serviceerror.NewNotFound("over"), errors.New("broken pipe"),
	} {
		assert.False(t, isContact(err), "%v", err)
	}
}

// A host that is well tries four times within the time that it has.
func TestHurry(t *testing.T) {
	p := &plan{Spec: &spec.RunSpec{OnDisconnect: "6s"}, Cluster: taskenv.Cluster{Hosts: 1}}
	assert.Equal(t, 1500*time.Millisecond, p.hurry(beatPatience))
	p.Spec.OnDisconnect = ""
	assert.Equal(t, beatPatience, p.hurry(beatPatience))
	p.Cluster.Hosts = 2
	assert.Equal(t, maxBeat, p.hurry(maxBeat))
}

// The rules of a run count on it.
func TestKillBound(t *testing.T) {
	assert.LessOrEqual(t, supervisor.DefaultKillBound, lifecycle.KillBound)
}
