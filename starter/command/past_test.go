package command

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/account"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// What was imported a moment ago is not old, however long ago the run has ended. Who asks the
// server for it learns that it is an imported one.
func TestImportsAreAsOldAsTheirImport(t *testing.T) {
	a := &app{}
	a.global.stateDir = t.TempDir()
	ended := time.Date(2020, 1, 31, 12, 0, 0, 0, time.UTC)
	of := account.New(&starter.Status{RunID: "iris", ExecutionID: "1", Ended: ended, Verdict: spec.VerdictSucceeded}, nil, nil)
	var file bytes.Buffer
	require.NoError(t, account.Pack(&file, of, nil, nil))
	_, err := account.Import(t.Context(), bytes.NewReader(file.Bytes()), a.importedDir(), 1<<20)
	require.NoError(t, err)
	unknown := func(id string) error { return a.ofImported(&starter.NotFoundError{RunID: id}) }
	assert.Equal(t, exitUsage, codeOf(unknown("iris")))
	require.ErrorContains(t, unknown("iris"), "run iris is an imported one")
	require.ErrorContains(t, unknown("iri"), "there is no run iri on this server", "it is named in full")
	require.ErrorContains(t, unknown("wine"), "there is no run wine on this server")

	manifests, err := filepath.Glob(filepath.Join(a.importedDir(), "*", "*", "manifest.json"))
	require.NoError(t, err)
	require.Len(t, manifests, 1)
	for imported, want := range map[time.Time]time.Time{ended.Add(time.Hour): ended.Add(time.Hour), ended.Add(-time.Hour): ended} {
		require.NoError(t, os.Chtimes(manifests[0], imported, imported))
		runs, err := a.pastImports()
		require.NoError(t, err)
		require.Len(t, runs, 1)
		assert.True(t, want.Equal(runs[0].facts.Ended), runs[0].facts.Ended)
		assert.True(t, ended.Equal(runs[0].Ended), "what is said of it")
	}
}
