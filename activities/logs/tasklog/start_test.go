package tasklog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte("pass"), 0o644))
	key, err := OpenValueKey(dir)
	require.NoError(t, err)
	s := &Start{Version: "1", Dir: dir, Files: FilesOf("/bin/sh", []string{"-x", "train.py", "nosuch", "."}, dir)}
	s.Variables(
		[]string{"HOME=/root", "RANK=0", "PATH=/other", "MY_TOKEN=xyzzy", "LENT=hush", "COPY=hush", "DB=postgres://me:plugh@db/x", "LONG=" + strings.Repeat("x", 2000)},
		[]string{"HOME=/root", "PATH=/bin", "MY_TOKEN=xyzzy", "GONE=1"},
		key, func(_, value string) bool { return value == "hush" })
	require.NoError(t, s.Write(dir))
	require.NoError(t, (&Start{Version: "2"}).Write(dir), "the first stays")

	raw, err := os.ReadFile(filepath.Join(dir, StartFile))
	require.NoError(t, err)
	for _, value := range []string{"xyzzy", "hush", "plugh", "/root"} {
		assert.NotContains(t, string(raw), value)
	}
	info, err := os.Stat(filepath.Join(dir, StartFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	got := ReadStart(dir)
	require.Equal(t, s, got)
	assert.Equal(t, map[string]*string{"HOME": new(key.digest("HOME", "/root")), "MY_TOKEN": nil}, got.Inherited)
	assert.Equal(t, "/other", *got.Set["PATH"])
	assert.Contains(t, *got.Set["LONG"], "2000 bytes, SHA-256 ")
	require.Len(t, got.Files, 2)
	assert.Equal(t, filepath.Join(dir, "train.py"), got.Files[1].Path)

	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Symlink(outside, filepath.Join(t.TempDir(), StartFile)))
	linked := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(linked, StartFile)))
	require.NoError(t, s.Write(linked))
	assert.NoFileExists(t, outside, "no link is followed")
	assert.Nil(t, ReadStart(t.TempDir()))
}

// The digests of inherited values tell whether the values are the same, and nothing else
// about them.
func TestInheritedValuesAreDigests(t *testing.T) {
	dir := t.TempDir()
	key, err := OpenValueKey(dir)
	require.NoError(t, err)
	again, err := OpenValueKey(dir)
	require.NoError(t, err)
	assert.Equal(t, key, again, "it is made once")
	info, err := os.Stat(filepath.Join(dir, valueKeyFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	other, err := OpenValueKey(t.TempDir())
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left behind")

	of := func(key ValueKey, env ...string) Start {
		var s Start
		s.Variables(env, env, key, func(string, string) bool { return false })
		return s
	}
	s := of(key, "PIN=1234", "PORT=1234")
	assert.Equal(t, s, of(again, "PIN=1234", "PORT=1234"))
	assert.NotEqual(t, s.Inherited["PIN"], of(key, "PIN=1235").Inherited["PIN"])
	assert.NotEqual(t, *s.Inherited["PIN"], *s.Inherited["PORT"])
	assert.NotEqual(t, s.Key, of(other).Key)
	assert.NotEqual(t, s.Inherited["PIN"], of(other, "PIN=1234").Inherited["PIN"])
	assert.Equal(t, map[string]*string{"PIN": nil}, of(nil, "PIN=1234").Inherited, "without a key nothing is kept")

	old := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(old, StartFile), []byte(`{"inherited":{"PIN":"1234"}}`), 0o600))
	assert.Equal(t, map[string]*string{"PIN": nil}, ReadStart(old).Inherited, "values of earlier versions go nowhere")
}
