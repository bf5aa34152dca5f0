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
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestAnIdleHostWorkerExits(t *testing.T) {
	dir := t.TempDir()
	s := &side{Options: Options{StateDir: dir, IdleExit: time.Nanosecond, Role: RoleHost}, log: zap.NewNop()}
	require.NoError(t, os.Mkdir(activities.PlansDir(dir), 0o700))
	plan := filepath.Join(activities.PlansDir(dir), "run.json")
	require.NoError(t, os.WriteFile(plan, []byte(`{"run": {"WorkflowID": "run"}}`), 0o600))
	assert.True(t, s.isNeeded(t.Context()), "it has a run")
	require.NoError(t, os.WriteFile(plan, []byte(`{"released": true}`), 0o600))

	state := must.Get(supervisor.OpenState(dir))(t) // this process is the supervisor
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, supervisor.SignalEnd)
	defer signal.Stop(asked)
	ctx, stop := context.WithCancel(t.Context())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		s.exitWhenIdle(ctx)
	}()
	<-asked
	state.Close()
	stop()
	<-exited
}
