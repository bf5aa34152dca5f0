package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestWhatHasChangedSince(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.py", "same", "gone"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("1"), 0o644))
	}
	start := &tasklog.Start{Version: "0.0.1", Dir: dir, Files: tasklog.FilesOf("/bin/sh", []string{"train.py", "same", "gone"}, dir)}
	then := []string{"LEVEL=1", "A_TOKEN=secret-1", "GONE=secret-2", "SAME=1", "RANK=0", "SHLVL=1"}
	key, err := tasklog.OpenValueKey(t.TempDir())
	require.NoError(t, err)
	start.Variables(then, then[:4], key, func(string, string) bool { return false })
	of := &record.Account{
		Status: &starter.Status{RunID: "a"}, Spec: &spec.RunSpec{},
		Tasks: []record.Task{{Name: "worker-0"}, {Name: "worker-1", Start: start}, {Name: "worker-2", Start: start}},
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte("12"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
	changes := changedHere(of)
	require.Len(t, changes, 3)
	assert.Equal(t, "clusterrun was 0.0.1, and is "+spec.Version, changes[0])
	assert.Contains(t, changes[1], filepath.Join(dir, "train.py")+" has changed: it had ")
	assert.Contains(t, changes[1], ", and has 2 bytes of ")
	assert.Equal(t, filepath.Join(dir, "gone")+": no such file or directory", changes[2])

	changes = changedVariables(of, []string{"LEVEL=secret-3", "A_TOKEN=secret-4", "SAME=1", "NEW=secret-5", "SHLVL=7"}, key)
	assert.Equal(t, []string{
		"in the environment of this shell LEVEL has another value",
		"in the environment of this shell NEW is new",
		"in the environment of this shell GONE is gone",
	}, changes, "names, and no values")

	assert.Len(t, changedVariables(of, []string{"LEVEL=secret-3", "NEW=secret-5"}, tasklog.ValueKey("another")), 2, "with another key values are not compared")

	start.Dir = filepath.Join(dir, "nosuch")
	assert.Contains(t, changedHere(of), "the directory "+start.Dir+": no such file or directory")
	assert.Empty(t, changedVariables(&record.Account{}, nil, key), "nothing is known")
}
