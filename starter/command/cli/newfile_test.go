package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestInterruptedFileIsNotThere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.tar.gz")
	for _, last := range []bool{true, false} {
		ctx, interrupt := context.WithCancel(t.Context())
		err := WriteNew(ctx, file, func(w io.Writer) error {
			_, err := io.WriteString(w, "half of it")
			require.NoError(t, err)
			interrupt()
			if last {
				return nil
			}
			_, err = io.WriteString(w, "and the rest")
			return err
		})
		require.ErrorIs(t, err, context.Canceled)
		entries := must.Get(os.ReadDir(dir))(t)
		assert.Empty(t, entries)
	}
	require.NoError(t, WriteNew(t.Context(), file, func(io.Writer) error { return nil }))
	var usage *UsageError
	require.ErrorAs(t, WriteNew(t.Context(), file, func(io.Writer) error { return nil }), &usage)
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"":                          {},
		"10m":                       now.Add(-10 * time.Minute),
		"0s":                        now,
		"2d":                        now.AddDate(0, 0, -2),
		"2026-11-20":                time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2026-11-21T09:00:00Z":      now.Add(-time.Hour),
		"2026-11-21T10:00:00+02:00": now.Add(-2 * time.Hour),
		"2026-11-21T09:00:00.5Z":    now.Add(-time.Hour + 500*time.Millisecond),
		"2026-11-21 09:00:00":       time.Date(2026, 11, 21, 9, 0, 0, 0, time.Local),
	} {
		at, err := ParseTime("--since", value, now)
		require.NoError(t, err, value)
		assert.True(t, want.Equal(at), "%s: %s", value, at)
	}
	for _, value := range []string{"-10m", "yesterday", "10", "-2d", "d"} {
		var usage *UsageError
		_, err := ParseTime("--since", value, now)
		assert.ErrorAs(t, err, &usage, value)
		assert.ErrorContains(t, err, "--since")
		assert.ErrorContains(t, err, now.Add(-10*time.Minute).Local().Format(time.DateTime))
	}
}

// If HOME is unset, the home in the password file is used. A HOME that cannot hold the state is an
// error.
func TestTheStateDirectoryWithoutAHome(t *testing.T) {
	for _, name := range []string{"CLUSTERRUN_STATE_DIR", "XDG_STATE_HOME", "HOME"} {
		t.Setenv(name, "")
	}
	inPasswd := stateIn(hostuser.Home(t.Context())) // empty for a user without an entry
	assert.Equal(t, inPasswd, must.Get(defaultStateDir())(t))
	for _, home := range []string{"relative", "/nonexistent", "/dev/null"} {
		t.Setenv("HOME", home)
		_, err := defaultStateDir()
		require.ErrorContains(t, err, "HOME is "+home)
		require.ErrorContains(t, err, "CLUSTERRUN_STATE_DIR")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	assert.Equal(t, filepath.Join(home, ".local/state/clusterrun"), must.Get(defaultStateDir())(t))
	t.Setenv("XDG_STATE_HOME", "/dev/null/state")
	assert.Equal(t, filepath.Join(home, ".local/state/clusterrun"), must.Get(defaultStateDir())(t), "no directory can be there")
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "new"))
	assert.Equal(t, filepath.Join(home, "new", "clusterrun"), must.Get(defaultStateDir())(t))
}

func TestTheStateOfAUserWithoutAHome(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var a App
	require.NoError(t, keepTemporarily(&a))
	assert.Contains(t, a.temporary, a.Global.StateDir+" and may not last")
	parent := filepath.Dir(a.Global.StateDir)
	info := must.Get(os.Stat(parent))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Remove(parent))
	require.NoError(t, os.Symlink(t.TempDir(), parent))
	require.ErrorContains(t, keepTemporarily(&a), "--state-dir", "another user may have put it there")
}
