package activities

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stopNotes is a supervisor that records its stop requests.
type stopNotes struct {
	supervisor.API
	requests []supervisor.StopRequest
}

func (s *stopNotes) Stop(_ context.Context, r supervisor.StopRequest) (supervisor.TasksReply, error) {
	s.requests = append(s.requests, r)
	return supervisor.TasksReply{}, nil
}

// An error that a process reported before it was stopped is its own, and the process gets a
// moment to end by itself. An error that it reports because of the stop is not.
func TestAProcessThatReportedBeforeItWasStoppedHasFailed(t *testing.T) {
	const grace = 50 * time.Millisecond
	begin := func(t *testing.T) (*stopNotes, *taskLease, supervisor.Process) {
		s := &stopNotes{}
		host, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Log: zap.NewNop()})
		require.NoError(t, err)
		p := &plan{Spec: (&spec.RunSpec{Stop: spec.Stop{Grace: spec.DurationOf(grace)}}).WithDefaults()}
		return s, &taskLease{Host: host, plan: p, key: runkey.Task{Task: "worker-0"}}, supervisor.Process{PID: 1, LogDir: t.TempDir()}
	}
	report := func(t *testing.T, p supervisor.Process) {
		require.NoError(t, os.WriteFile(filepath.Join(p.LogDir, tasklog.ErrorFile), []byte(`{"message": "KeyError: 'lr'"}`), 0o600))
	}

	t.Run("because of the stop", func(t *testing.T) {
		s, l, p := begin(t)
		require.NoError(t, l.stopProcess(t.Context(), p))
		require.Len(t, s.requests, 1)
		assert.False(t, s.requests[0].Failed)
		assert.Equal(t, grace, s.requests[0].Grace)
		report(t, p)
		p.Exit = &supervisor.Exit{Code: 1, Reason: supervisor.ReasonCollateral}
		exit, _ := describeExit(l.Name, p, l.Owned, "")
		assert.Equal(t, spec.CauseCollateral, exit.Cause)
		assert.False(t, exit.Reported)
	})

	t.Run("before it, and it does not end", func(t *testing.T) {
		s, l, p := begin(t)
		report(t, p)
		require.NoError(t, l.stopProcess(t.Context(), p))
		require.Len(t, s.requests, 1)
		assert.True(t, s.requests[0].Failed)
		assert.Zero(t, s.requests[0].Grace, "all of it has been waited for")
		p.Exit = &supervisor.Exit{Code: -15, Reason: supervisor.ReasonCollateral, Failed: true}
		exit, _ := describeExit(l.Name, p, l.Owned, "")
		assert.Equal(t, spec.CauseCollateral, exit.Cause)
		assert.True(t, exit.Reported)
		assert.Equal(t, "KeyError: 'lr'", exit.Message)
	})

	t.Run("before it, and it ends by itself", func(t *testing.T) {
		s, l, p := begin(t)
		report(t, p)
		ended, end := context.WithCancel(t.Context())
		end()
		require.NoError(t, l.stopProcess(ended, p))
		assert.Empty(t, s.requests)
	})
}
