package harness

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// PostgreSQL is a database server with its own directory.
type PostgreSQL struct {
	t         testing.TB
	bin, data string
	port      string
	user      *syscall.Credential // nil without another user
	process   *Process
}

// StartPostgreSQL starts a database server. It skips the test if PostgreSQL is not installed.
func StartPostgreSQL(t testing.TB) *PostgreSQL {
	t.Helper()
	bin := postgresqlPrograms(t)
	data, err := os.MkdirTemp("", "postgresql-") // only root could reach t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	_, port, err := net.SplitHostPort(FreeAddress(t))
	require.NoError(t, err)
	d := &PostgreSQL{t: t, bin: bin, data: data, port: port}
	if os.Getuid() == 0 { // it refuses to run as root
		u, err := user.Lookup("nobody")
		require.NoError(t, err)
		uid, err := strconv.Atoi(u.Uid)
		require.NoError(t, err)
		gid, err := strconv.Atoi(u.Gid)
		require.NoError(t, err)
		require.NoError(t, os.Chown(d.data, uid, gid))
		d.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // as of the system
	}
	made := d.start("initdb", "--pgdata", d.data, "--username", temporalUser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	require.Zero(t, made.ExitCode(), made.Stderr())
	d.Restart()
	return d
}

// temporalUser is the database's user, who does not need a password.
const temporalUser = "temporal"

// postgresqlPrograms returns the directory with PostgreSQL's programs.
func postgresqlPrograms(t testing.TB) string {
	t.Helper()
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if program, err := exec.LookPath("initdb"); err == nil {
		if program, err = filepath.EvalSymlinks(program); err == nil {
			dirs = append([]string{filepath.Dir(program)}, dirs...)
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			return dir
		}
	}
	t.Skip("PostgreSQL is not installed (Debian: postgresql)")
	return ""
}

func (d *PostgreSQL) start(program string, args ...string) *Process {
	d.t.Helper()
	return StartAs(d.t, d.user, "/", Env("/"), append([]string{filepath.Join(d.bin, program)}, args...)...)
}

// Restart starts or restarts the server and waits until it answers.
func (d *PostgreSQL) Restart() {
	d.t.Helper()
	d.process = d.start("postgres", "-D", d.data, "-p", d.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	Eventually(d.t, "PostgreSQL answers", func() bool {
		require.False(d.t, d.process.Exited(), "PostgreSQL ended: %s", d.process.Stderr())
		_, err := d.query("SELECT 1")
		return err == nil
	})
}

// Kill kills the server with SIGKILL, and waits until all its processes are gone.
func (d *PostgreSQL) Kill() {
	d.t.Helper()
	children := Children(d.process.Cmd.Process.Pid)
	d.process.Kill(syscall.SIGKILL)
	d.process.ExitCode()
	for _, pid := range children {
		Eventually(d.t, "a process of PostgreSQL ends with it", func() bool { return State(pid) == "" || State(pid) == "Z" })
	}
}

func (d *PostgreSQL) query(sql string) (string, error) {
	out, err := exec.Command(filepath.Join(d.bin, "psql"), "-h", "127.0.0.1", "-p", d.port, "-U", temporalUser, "-d", "postgres", "-Atc", sql).Output()
	return strings.TrimSpace(string(out)), err
}

func (d *PostgreSQL) number(sql string) int64 {
	d.t.Helper()
	text, err := d.query(sql)
	require.NoError(d.t, err)
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(d.t, err)
	return n
}

// PIDs returns the server's process IDs.
func (d *PostgreSQL) PIDs() []int {
	pid := d.process.Cmd.Process.Pid
	return append([]int{pid}, Children(pid)...)
}

// CPU returns the server processes' CPU time, including exited processes.
func (d *PostgreSQL) CPU() (used time.Duration) {
	for i, pid := range d.PIDs() {
		stat, _ := proc.ReadStat(pid) // an exited process is a child of the first
		used += stat.User + stat.System
		if i == 0 {
			used += stat.ChildUser + stat.ChildSystem
		}
	}
	return used
}

// Transactions returns the number of committed transactions.
func (d *PostgreSQL) Transactions() int64 {
	return d.number("SELECT sum(xact_commit) FROM pg_stat_database")
}

// Connections returns the number of connections to Temporal's databases.
func (d *PostgreSQL) Connections() int64 {
	return d.number("SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'temporal%'")
}

// Bytes returns the size of Temporal's databases.
func (d *PostgreSQL) Bytes() int64 {
	return d.number("SELECT sum(pg_database_size(datname)) FROM pg_database WHERE datname LIKE 'temporal%'")
}
