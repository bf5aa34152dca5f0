package workers

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestOneProcessWantsAHostWorkerAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "worker")
	release := must.Get(Want(t.Context(), dir))(t)
	late, cancel := context.WithTimeout(t.Context(), 3*wantedEvery)
	defer cancel()
	_, err := Want(late, dir)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	release()

	// The process that exited is gone.
	file := filepath.Join(dir, wantedFile)
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o600))
	must.Get(Want(t.Context(), dir))(t)()
	assert.Empty(t, must.Get(os.ReadFile(file))(t), "otherwise a later process with its ID would be stopped")
}

func TestAnIdleHostWorkerStaysWhileItIsWanted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, wantedFile)
	s := &side{Options: Options{StateDir: dir, IdleExit: time.Hour, Role: RoleHost}, log: zap.NewNop()}
	exits := func() bool {
		require.NoError(t, s.exitUnlessWanted(t.Context()))
		return len(must.Get(os.ReadFile(file))(t)) > 0
	}
	release := must.Get(Want(t.Context(), dir))(t)
	require.ErrorIs(t, s.exitUnlessWanted(t.Context()), filelock.ErrLocked)
	release()
	assert.False(t, exits(), "it was wanted a moment ago")

	longAgo := time.Now().Add(-2 * s.IdleExit)
	require.NoError(t, os.Chtimes(file, longAgo, longAgo))
	require.NoError(t, os.Mkdir(activities.PlansDir(dir), 0o700))
	plan := filepath.Join(activities.PlansDir(dir), "run.json")
	require.NoError(t, os.WriteFile(plan, []byte(`{"run": {"WorkflowID": "run"}}`), 0o600))
	assert.False(t, exits(), "it has a run")
	require.NoError(t, os.WriteFile(plan, []byte(`{"released": true}`), 0o600))
	assert.False(t, exits(), "it exits already")

	state := must.Get(supervisor.OpenState(dir))(t) // this process is the supervisor
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, supervisor.SignalEnd)
	defer signal.Stop(asked)
	go func() {
		<-asked
		state.Close()
	}()
	assert.True(t, exits())
}
