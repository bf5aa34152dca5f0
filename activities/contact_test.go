package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A healthy host tries four times before its processes are stopped.
func TestHurry(t *testing.T) {
	p := &plan{Spec: &spec.RunSpec{OnDisconnect: "6s"}, Cluster: hostapi.Cluster{Hosts: 1}}
	assert.Equal(t, 1500*time.Millisecond, p.hurry(beatPatience))
	p.Spec.OnDisconnect = ""
	assert.Equal(t, beatPatience, p.hurry(beatPatience))
	p.Cluster.Hosts = 2
	assert.Equal(t, 8*time.Second, p.hurry(8*time.Second))
}

// The rules of a run depend on this bound.
func TestKillBound(t *testing.T) {
	assert.LessOrEqual(t, supervisor.DefaultKillBound, lifecycle.KillBound)
}
