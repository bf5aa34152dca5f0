package devserver

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// Temporal does not migrate SQLite files, and a server that opens a file with a different schema
// fails later, in obscure ways. So each file has a stamp, in a separate table, that records its
// schema and the server that last used it.
const (
	stampTable = "clusterrun_devserver"

	createStamp = `CREATE TABLE ` + stampTable + ` (
		id             INTEGER PRIMARY KEY CHECK (id = 1),
		schema_digest  TEXT NOT NULL,
		server_version TEXT NOT NULL,
		created        TEXT NOT NULL)`
	insertStamp = `INSERT INTO ` + stampTable + ` VALUES (1, ?, ?, ?)`
	selectStamp = `SELECT schema_digest, server_version FROM ` + stampTable + ` WHERE id = 1`
	updateStamp = `UPDATE ` + stampTable + ` SET server_version = ? WHERE id = 1`
)

// stamp is the version information in a database.
type stamp struct {
	schemaDigest, serverVersion string
}

// upToDate is false for a database without a stamp, which is an empty one.
func (s *stamp) upToDate() bool { return s != nil && s.serverVersion == headers.ServerVersion }

// readStamp returns nil for an empty database, and refuses a database that this server must not
// change. Its errors continue a sentence that starts with the file's name.
func readStamp(ctx context.Context, tx *sql.Tx) (*stamp, error) {
	const count = `SELECT count(*), count(CASE WHEN name = '` + stampTable + `' THEN 1 END) FROM sqlite_master WHERE type = 'table'`
	var tables, stamps int
	err := tx.QueryRowContext(ctx, count).Scan(&tables, &stamps)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w; it was left unchanged; choose another file", err)
	case tables == 0:
		return nil, nil
	case stamps == 0:
		return nil, errors.New("is another program's database; it was left unchanged; choose another file")
	}
	var s stamp
	if err := tx.QueryRowContext(ctx, selectStamp).Scan(&s.schemaDigest, &s.serverVersion); err != nil {
		return nil, fmt.Errorf("has no readable version stamp: %w; it was left unchanged; choose another file", err)
	}
	schema, err := schemaStatements()
	if err != nil {
		return nil, err
	}
	return &s, compatible(s, stamp{digestOf(schema), headers.ServerVersion})
}

// writeStamp sets up an empty database if old is nil, and otherwise records that this server has
// used the database.
func writeStamp(ctx context.Context, tx *sql.Tx, old *stamp) error {
	if old != nil {
		_, err := tx.ExecContext(ctx, updateStamp, headers.ServerVersion)
		return err
	}
	schema, err := schemaStatements()
	if err != nil {
		return err
	}
	digest := digestOf(schema)
	for _, stmt := range append(slices.DeleteFunc(schema, indexesRarely), createStamp) {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("cannot be set up: %w", err)
		}
	}
	_, err = tx.ExecContext(ctx, insertStamp, digest, headers.ServerVersion, time.Now().UTC().Format(time.RFC3339))
	return err
}

// indexesRarely reports whether a statement creates an index for a rare query. Each write of a run's
// row would update nearly sixty of them, which takes more time than the rest of the write. A scan of
// one user's runs is fast enough.
func indexesRarely(stmt string) bool {
	name, ok := strings.CutPrefix(stmt, "CREATE INDEX by_")
	return ok && !strings.HasPrefix(name, "workflow_id ") && !strings.HasPrefix(name, "status ")
}

// compatible implements Temporal's guarantees about stored data. The next minor version can read
// what this version wrote, and patch versions of the same minor version can read each other's data.
// The schema must be the same.
func compatible(file, ours stamp) error {
	const remedy = "use the clusterrun-devserver that created it, or choose another file"
	theirs, our := "v"+file.serverVersion, "v"+ours.serverVersion
	switch {
	case !semver.IsValid(theirs):
		return fmt.Errorf("carries the stamp of an unknown server version %q; %s", file.serverVersion, remedy)
	case semver.Compare(semver.MajorMinor(theirs), semver.MajorMinor(our)) > 0:
		return fmt.Errorf("was last used by Temporal server %s, which is newer than this server (%s); %s",
			file.serverVersion, ours.serverVersion, remedy)
	case !sameOrNextMinor(theirs, our):
		return fmt.Errorf("was last used by Temporal server %s, which is too old for this server (%s); %s",
			file.serverVersion, ours.serverVersion, remedy)
	case file.schemaDigest != ours.schemaDigest:
		return fmt.Errorf("has the schema of Temporal server %s, but this server (%s) has a different one; %s",
			file.serverVersion, ours.serverVersion, remedy)
	}
	return nil
}

func sameOrNextMinor(file, ours string) bool {
	var fileMajor, fileMinor, major, minor int
	_, err1 := fmt.Sscanf(semver.MajorMinor(file), "v%d.%d", &fileMajor, &fileMinor)
	_, err2 := fmt.Sscanf(semver.MajorMinor(ours), "v%d.%d", &major, &minor)
	return err1 == nil && err2 == nil && fileMajor == major && (minor == fileMinor || minor == fileMinor+1)
}

// schemaStatements returns the statements that this server's library uses to set up a database.
func schemaStatements() ([]string, error) {
	var r statementRecorder
	if err := sqliteschema.SetupSchemaOnDB(&r); err != nil {
		return nil, fmt.Errorf("reading the server's schema: %w", err)
	}
	return r.statements, nil
}

func digestOf(statements []string) string {
	sum := sha256.Sum256([]byte(strings.Join(statements, ";\n")))
	return hex.EncodeToString(sum[:])
}

// statementRecorder is given to the library instead of a database, since the library only executes
// statements on it. Executing the statements here makes them one transaction, and avoids a
// connection that the library would never close.
type statementRecorder struct {
	sqlplugin.AdminDB // for the methods that are not called
	statements        []string
}

func (r *statementRecorder) Exec(stmt string, _ ...any) error {
	r.statements = append(r.statements, stmt)
	return nil
}
