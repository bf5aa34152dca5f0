package hostservice

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
)

// The files of a run are read as its user, even if its directory is missing or a path leads
// to root's files.
func TestFilesAreReadAsTheUserOfTheRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	user, err := hostuser.Lookup(t.Context(), "nobody")
	require.NoError(t, err)
	h := newHost(t)
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(h.dir)), 0o711))
	h.write(0, 0, tasklog.StdoutFile, "the secret\n")
	h.write(0, 0, tasklog.ResultFile, "1")
	secret := tasklog.ProcessDir(h.dir, 0, 0)
	require.NoError(t, os.Chmod(secret, 0o700))

	// The directory belongs to root.
	c := h.client(*h.Describe(h.run, h.dir, user))
	for _, file := range []string{"stdout", "result"} {
		_, err = c.ReadFile(t.Context(), 0, 0, file)
		require.Error(t, err, file)
	}
	// The directory is missing, and then a link appears in its place.
	later := filepath.Join(filepath.Dir(h.dir), "later")
	c = h.client(*h.Describe(h.run, later, user))
	response, err := c.ask(t.Context(), http.MethodGet, "/tasks/0/attempts/0/stdout?follow=true", nil)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(later, 0o755))
	require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(later, "attempt_0")))
	close(h.over)
	b, _ := io.ReadAll(response.Body) // the body may be cut off
	require.NoError(t, response.Body.Close())
	assert.Empty(t, string(b))

	// The user's own files are read.
	for _, path := range []string{secret, filepath.Join(secret, tasklog.StdoutFile)} {
		require.NoError(t, os.Chown(path, int(user.UID), int(user.GID)))
	}
	b, err = h.client(*h.Describe(h.run, h.dir, user)).ReadFile(t.Context(), 0, 0, "stdout")
	require.NoError(t, err)
	assert.Equal(t, "the secret\n", string(b))

	// This token does not say whose files they are.
	_, err = h.client(*h.describe(grant{Run: h.run, Dir: h.dir})).ReadFile(t.Context(), 0, 0, "stdout")
	require.ErrorContains(t, err, "the token does not name the owner of the files")
}
