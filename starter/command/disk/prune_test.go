package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
)

// If the mark of a run cannot be read, because a disk fails for a moment, the run is not
// removed from the server.
func TestARunThatMayBeKept(t *testing.T) {
	a := &cli.App{}
	a.Global.StateDir = t.TempDir()
	elsewhere := t.TempDir()
	r := &pastRun{RunID: "iris", ExecutionID: "0198c0de-0000-7000-8000-000000000001"}
	keeps := func(its ...string) (bool, error) { return keeps(a, "", r, its) }

	kept, err := keeps(filepath.Join(elsewhere, "nothing"), elsewhere)
	require.NoError(t, err, "no directory, and no run in it")
	assert.False(t, kept)

	file := filepath.Join(elsewhere, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = keeps(file)
	require.ErrorContains(t, err, file)

	run := filepath.Dir(tasklog.RunDir(elsewhere, r.RunID, r.ExecutionID))
	require.NoError(t, os.WriteFile(run, nil, 0o600))
	_, err = keeps(elsewhere)
	require.ErrorContains(t, err, elsewhere+": ")

	require.NoError(t, os.Remove(run))
	execution := tasklog.RunDir(elsewhere, r.RunID, r.ExecutionID)
	require.NoError(t, os.MkdirAll(execution, 0o700))
	require.NoError(t, os.WriteFile(execution+".keep", nil, 0o600))
	kept = must.Get(keeps(elsewhere))(t)
	assert.True(t, kept)
}
