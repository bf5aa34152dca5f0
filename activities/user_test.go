package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The plan records the user as which files are read. The present owner of their directory
// proves nothing.
func TestFilesOfAnotherUserAreNotReadAsUs(t *testing.T) {
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Log: zap.NewNop()})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, tasklog.StderrFile), []byte("the secret\n"), 0o600))
	ours := supervisor.Process{Key: runkey.Task{Task: "worker-0"}, PID: 1, LogDir: dir, Exit: &supervisor.Exit{Code: 1}}
	theirs := ours
	theirs.User = "alice"
	p := &plan{Spec: (&spec.RunSpec{}).WithDefaults()}

	for _, p := range []*plan{nil, p} {
		e, _ := h.describeExit(p, ours)
		assert.Equal(t, "the secret", e.Message)
		e, _ = h.describeExit(p, theirs)
		assert.Equal(t, "the process ran as the user alice, and the record needed to read its files is gone", e.Message)
		assert.Equal(t, 1, e.ExitCode)
		assert.Equal(t, spec.CauseOrigin, e.Cause)
	}
	assert.Len(t, lastOutput(p, []supervisor.Process{ours}), 1)
	assert.Empty(t, lastOutput(p, []supervisor.Process{theirs}))

	alice := &hostuser.User{Name: "alice", UID: 54321}
	user, err := (&plan{User: alice}).userOf(theirs)
	require.NoError(t, err)
	assert.Equal(t, alice, user)
}
