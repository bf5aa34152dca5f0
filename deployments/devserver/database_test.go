package devserver

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
)

// Another program's file is refused, with a remedy, and left unchanged.
func TestForeignDatabase(t *testing.T) {
	schema, err := schemaStatements()
	require.NoError(t, err)
	stamped := func(set string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			d := &database{path: path}
			require.NoError(t, d.prepare(context.Background()))
			execAll(t, path, "UPDATE "+stampTable+" SET "+set)
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		says string
	}{
		"no database": {
			func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("dear diary"), 0o600)) },
			"is not a SQLite database",
		},
		"long and no database": {
			func(t *testing.T, path string) {
				require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("dear diary ", 1000)), 0o600))
			},
			"is not a SQLite database",
		},
		"damaged": {
			func(t *testing.T, path string) {
				require.NoError(t, os.WriteFile(path, append(sqliteMagic, strings.Repeat("?", 8192)...), 0o600))
			},
			"runs.db",
		},
		"directory": {
			func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
			"is a directory; name a file in it",
		},
		"other program's": {
			func(t *testing.T, path string) { execAll(t, path, "CREATE TABLE songs (title TEXT)") },
			"is another program's database",
		},
		"temporal server start-dev's": {
			func(t *testing.T, path string) { execAll(t, path, schema...) },
			"is another program's database",
		},
		"newer":        {stamped("server_version = '1.99.0'"), "was last used by Temporal server 1.99.0, which is newer"},
		"too old":      {stamped("server_version = '1.20.3'"), "was last used by Temporal server 1.20.3, which is too old"},
		"other schema": {stamped("schema_digest = 'x'"), "has the schema of Temporal server"},
		"no version":   {stamped("server_version = 'x'"), "unknown server version"},
		"empty stamp": {func(t *testing.T, path string) {
			stamped("id = 1")(t, path)
			execAll(t, path, "DELETE FROM "+stampTable)
		}, "no readable version stamp"},
		"not a regular": {func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := testFile(t)
			c.make(t, path)
			before := contents(path)
			says := refused(t, ExitFailure, "--port=0", "--headless", "--db", path)
			assert.Contains(t, says, "--db: "+path)
			assert.Contains(t, says, c.says)
			assert.Regexp(t, "choose another|name a file|cannot be opened", says, "says what to do")
			assert.True(t, before == contents(path), "it is as it was")
		})
	}
}

func TestUnusablePlace(t *testing.T) {
	dir := t.TempDir()
	says := refused(t, ExitFailure, "--port=0", "--headless", "--db", filepath.Join(dir, "missing", "runs.db"))
	assert.Contains(t, says, "the directory does not exist; create it")

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	says = refused(t, ExitFailure, "--port=0", "--headless", "--db", filepath.Join(file, "runs.db"))
	assert.Contains(t, says, "not a directory")

	if os.Geteuid() == 0 {
		t.Log("root may write everywhere")
		return
	}
	readOnly := filepath.Join(dir, "read-only")
	require.NoError(t, os.Mkdir(readOnly, 0o500))
	says = refused(t, ExitFailure, "--port=0", "--headless", "--db", filepath.Join(readOnly, "runs.db"))
	assert.Contains(t, says, "permission denied; choose a file in a directory that you may write to")
}

func TestDatabaseIsCreatedForItsOwnerOnly(t *testing.T) {
	// A name with every character that is special in a URI, through a link.
	dir := filepath.Join(t.TempDir(), "50% of what? #1 & more")
	require.NoError(t, os.Mkdir(dir, 0o700))
	link := filepath.Join(t.TempDir(), "link.db")
	path := filepath.Join(dir, "runs.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Symlink(path, link))

	p := start(t, "--db", link)
	startWorkflow(t, p.client(), "nobody serves this")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
		names = append(names, f.Name())
	}
	assert.Equal(t, []string{"runs.db", "runs.db-shm", "runs.db-wal", "runs.db.lock"}, names)

	says := refused(t, ExitFailure, "--port=0", "--headless", "--db", path)
	assert.Contains(t, says, "is in use by another clusterrun-devserver", "link and file have one lock")
}

func TestSecondServerOnADatabaseIsRefused(t *testing.T) {
	path := testFile(t)
	ready := filepath.Join(filepath.Dir(path), "ready.json")
	first := start(t, "--db", path, "--ready-file", ready)
	says := refused(t, ExitFailure, "--port=0", "--headless", "--db", path, "--ready-file", ready)
	assert.Contains(t, says, fmt.Sprintf("%s is in use by another clusterrun-devserver (%s.lock is held by pid %d)",
		path, path, first.cmd.Process.Pid))
	assert.True(t, exists(ready), "it is the first one's")

	first.signal(syscall.SIGTERM)
	require.Equal(t, ExitOK, first.await())
	start(t, "--db", path)
}

func TestCompatible(t *testing.T) {
	for _, c := range []struct {
		file, ours string
		ok         bool
	}{
		{"1.32.1", "1.32.1", true},
		{"1.32.0", "1.32.1", true},
		{"1.32.9", "1.32.1", true}, // patches read each other's
		{"1.31.4", "1.32.1", true},
		{"1.30.0", "1.32.1", false},
		{"1.33.0", "1.32.1", false},
		{"0.32.1", "1.32.1", false},
		{"2.32.1", "1.32.1", false},
		{"", "1.32.1", false},
	} {
		err := compatible(stamp{"same", c.file}, stamp{"same", c.ours})
		assert.Equal(t, c.ok, err == nil, "%s read by %s: %v", c.file, c.ours, err)
	}
	assert.Error(t, compatible(stamp{"one", "1.32.1"}, stamp{"other", "1.32.1"}))
}

func TestUpgradeIsStamped(t *testing.T) {
	path := testFile(t)
	d := &database{path: path}
	require.NoError(t, d.prepare(context.Background()))
	old := headers.ServerVersion[:strings.LastIndex(headers.ServerVersion, ".")] + ".0"
	execAll(t, path, "UPDATE "+stampTable+" SET server_version = '"+old+"'")
	require.NoError(t, d.prepare(context.Background()))

	db := open(t, path)
	var version string
	require.NoError(t, db.QueryRow("SELECT server_version FROM "+stampTable).Scan(&version))
	assert.Equal(t, headers.ServerVersion, version)
}

// contents returns a file's contents, or "" if it does not exist.
func contents(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, _ := os.ReadFile(path)
	return string(b)
}

func open(t *testing.T, path string) *sql.DB {
	db, err := sql.Open(sqlite.PluginName, path)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func execAll(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := open(t, path)
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err, s)
	}
	require.NoError(t, db.Close())
}
