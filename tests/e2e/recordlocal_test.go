package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecordLocal writes the history of a group that is restarted on the only host of its run, which
// has the workflow, too.
func TestRecordLocal(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	code, _, stderr := f.CLI(t, "run", "--id", "local", "-n", "2", "--restart-scope", "group", "--", "bash", "-c", `[ $CLUSTERRUN_GENERATION = 1 ] || exit 3`)
	require.Zero(t, code, stderr)
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), "local", ""), filepath.Join(dir, "local.json"))
}
