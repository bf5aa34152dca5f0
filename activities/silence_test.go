package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// silentSupervisor records who is stopped, and knows no processes, so that no stacks are
// captured.
type silentSupervisor struct {
	supervisor.API
	stops []supervisor.StopRequest
}

func (s *silentSupervisor) Stop(_ context.Context, r supervisor.StopRequest) (supervisor.TasksReply, error) {
	s.stops = append(s.stops, r)
	return supervisor.TasksReply{}, nil
}

func (s *silentSupervisor) Processes(context.Context, runkey.Run) (supervisor.ProcessesReply, error) {
	return supervisor.ProcessesReply{}, nil
}

// on_silence is carried out once all tasks of the run on the host are silent, and again only
// after one has given a sign.
func TestOnSilence(t *testing.T) {
	s := &silentSupervisor{}
	h := &Host{
		Config:   Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Log: zap.NewNop()},
		attached: map[runkey.Task]int{}, nudge: make(chan struct{}, 1), ended: make(chan struct{}, 1), now: time.Now,
	}
	var err error
	h.services, err = taskservices.New(taskservices.Config{StateDir: h.StateDir, Log: h.Log})
	require.NoError(t, err)
	t.Cleanup(h.services.Close)
	limit := spec.Duration(time.Minute)
	p := &plan{Spec: &spec.RunSpec{Silence: &limit, OnSilence: spec.OnSilenceStop, Stop: spec.Stop{Signal: "SIGINT"}}}
	leaseOf := func(run, task string) *taskLease {
		l := &taskLease{Host: h, plan: p, key: runkey.Task{Run: runkey.Run{WorkflowID: run}, Task: task}}
		h.attach(l.key)
		return l
	}
	a, b := leaseOf("run", "worker-0"), leaseOf("run", "worker-1")
	leaseOf("other", "worker-0")
	begun := time.Now()
	look := func(l *taskLease, after time.Duration, output int64) int {
		return l.silentFor(begun.Add(after), lifecycle.Signs{Output: output})
	}
	for _, l := range []*taskLease{a, b} {
		assert.Zero(t, look(l, 0, 0))
		assert.False(t, l.mustAct())
	}
	assert.Equal(t, 60, look(a, time.Minute, 0))
	assert.False(t, a.mustAct(), "the other one has not been looked at")
	assert.Zero(t, look(b, time.Minute, 1))
	assert.False(t, a.mustAct(), "the other one works")
	assert.Equal(t, 60, look(b, 2*time.Minute, 1))
	assert.True(t, a.mustAct())
	assert.False(t, a.mustAct(), "once")
	assert.True(t, b.mustAct())
	assert.Equal(t, 120, look(a, 3*time.Minute, 0))
	assert.False(t, a.mustAct(), "once")
	assert.Zero(t, look(a, 4*time.Minute, 1), "a sign")
	assert.False(t, a.mustAct())
	assert.Equal(t, 60, look(a, 5*time.Minute, 1))
	assert.True(t, a.mustAct(), "again")
	look(a, 6*time.Minute, 2)
	h.detach(b.key)
	look(a, 7*time.Minute, 2)
	assert.True(t, a.mustAct(), "it is the last one here")

	a.actOnSilence(t.Context(), supervisor.Process{Key: a.key, Number: 4})
	require.Len(t, s.stops, 1)
	stop := s.stops[0]
	assert.Equal(t, []supervisor.ProcessRef{{Key: a.key, Number: 4}}, stop.Processes)
	assert.Equal(t, 2, stop.Signal)
	assert.Equal(t, supervisor.ReasonSilence, stop.Reason)
	assert.Equal(t, "silent for 1m: no output, no progress and no processor time", stop.Detail)
	exit := exitOf(supervisor.Process{Exit: &supervisor.Exit{Reason: stop.Reason, Detail: stop.Detail}}, false, "")
	assert.Equal(t, spec.CauseSilence, exit.Cause, "whatever its exit code")
	assert.True(t, exit.Cause.ByItself(), "a failure")

	p.Spec.OnSilence = spec.OnSilenceStacks
	a.actOnSilence(t.Context(), supervisor.Process{Key: a.key})
	assert.Len(t, s.stops, 1)
	p.Spec.Silence = nil
	assert.Zero(t, look(a, time.Hour, 2))
	assert.False(t, a.mustAct())
}
