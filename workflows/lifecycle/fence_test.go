package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A host is given up when its slowest process must be gone, and never by a run that keeps
// its processes.
func TestFence(t *testing.T) {
	s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker"}, {Type: "ps", Stop: spec.Stop{Grace: spec.DurationOf(time.Minute)}}}}
	s = s.WithDefaults()
	_, ok := lifecycle.FenceOf(s, 1)
	assert.False(t, ok)
	f, ok := lifecycle.FenceOf(s, 2)
	assert.True(t, ok)
	assert.Equal(t, lifecycle.Fence{StopAfter: 2 * time.Minute, Grace: time.Minute}, f)
	assert.Equal(t, 2*time.Minute+1200*time.Millisecond+time.Minute+lifecycle.KillBound+5*time.Second, f.Passed())
	s.OnDisconnect = spec.OnDisconnectKeep
	_, ok = lifecycle.FenceOf(s, 2)
	assert.False(t, ok)
}
