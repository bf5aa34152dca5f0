package devserver

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
)

// sqliteMagic is the start of every SQLite file.
var sqliteMagic = []byte("SQLite format 3\x00")

// sqlitePragmas of a database file. With a write-ahead log and synchronous=1 (NORMAL) a commit does
// not wait for the disk. If the server is killed, nothing is lost. In a power cut, at most the last
// moments are lost, and the file remains consistent. By default, every commit waits, which makes a
// launch several times slower.
var sqlitePragmas = map[string]string{
	"journal_mode": "wal",
	"synchronous":  "1",
	// Another program may be reading the file.
	"busy_timeout": "10000",
}

// database is the file that contains the server's state.
type database struct {
	path string
	lock *os.File // held until the process exits
}

// claimDatabase ensures that no other process uses the database, and that the file is empty or an
// SQLite database. It does not write to the file.
func claimDatabase(name string) (*database, error) {
	path, err := resolvePath(name)
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	// Check before locking, because locking creates a file next to the database.
	if err := checkFile(path); err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	lock, err := lockFile(path + ".lock")
	var locked errLocked
	switch {
	case errors.As(err, &locked):
		return nil, fmt.Errorf("--db: %s is in use by another clusterrun-devserver (%w): "+
			"use that server, stop it, or choose another file", path, locked)
	case err != nil:
		return nil, fmt.Errorf("--db: %w; choose a file in a directory that you may write to", err)
	}
	return &database{path: path, lock: lock}, nil
}

// resolvePath follows symbolic links, so that each file has one lock.
func resolvePath(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s: the directory does not exist; create it, or choose another file", path)
		}
		return filepath.Join(dir, filepath.Base(path)), err
	}
	return real, err
}

// checkFile refuses a file that is not an SQLite database. Missing and empty files are accepted.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it, for example %s", path, filepath.Join(path, "clusterrun.db"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; choose another file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w; the server must be able to write to its database", err)
	}
	defer f.Close()
	magic := make([]byte, len(sqliteMagic))
	n, err := io.ReadFull(f, magic)
	switch {
	case errors.Is(err, io.EOF): // empty
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case !bytes.Equal(magic[:n], sqliteMagic):
		return fmt.Errorf("%s is not a SQLite database; it was left unchanged; choose another file", path)
	}
	return nil
}

// prepare ensures that this server can use the database. It checks the stamp. If the database is
// empty, it sets it up in one transaction, so that a server that is killed meanwhile leaves an
// empty database rather than half a schema.
func (d *database) prepare(ctx context.Context) error {
	// SQLite would let other users read the file, which contains what people run.
	f, err := os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("--db: %w; choose a file that you may write to", err)
	}
	f.Close()

	// At first, only read the file, which may belong to another program. Even setting the journal
	// mode would write to it.
	var found *stamp
	err = d.transact(ctx, url.Values{"mode": {"ro"}}, func(tx *sql.Tx) error {
		found, err = readStamp(ctx, tx)
		return err
	})
	if err != nil || found.upToDate() {
		return err
	}
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}}
	for k, v := range sqlitePragmas {
		query.Add("_pragma", k+"="+v)
	}
	return d.transact(ctx, query, func(tx *sql.Tx) error { return writeStamp(ctx, tx, found) })
}

func (d *database) transact(ctx context.Context, query url.Values, do func(*sql.Tx) error) error {
	db, err := sql.Open(sqlite.PluginName, "file:"+escapePath(d.path)+"?"+query.Encode())
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("--db: %s cannot be opened: %w", d.path, err)
	}
	defer tx.Rollback() // does nothing after the commit
	if err := do(tx); err != nil {
		return fmt.Errorf("--db: %s %w", d.path, err)
	}
	return tx.Commit()
}

// config returns the server's persistence configuration.
func (d *database) config() *config.SQL {
	attributes := map[string]string{"mode": "rw"}
	for k, v := range sqlitePragmas {
		attributes[k] = v
	}
	return &config.SQL{
		PluginName:        sqlite.PluginName,
		DatabaseName:      escapePath(d.path),
		ConnectAttributes: attributes,
	}
}

// release releases the database to the next server.
func (d *database) release() {
	_ = d.lock.Close()
}

// escapePath escapes a path for an SQLite URI, where ? and % are special.
func escapePath(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}
