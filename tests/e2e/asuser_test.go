package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// shared is a host with a worker that runs as root. It runs programs in a user's directory as
// that user. Both users exist on every system.
type shared struct {
	*harness.Server
	t           *testing.T
	worker      *harness.Worker
	dir         string
	alice, mara *user.User
}

func newShared(t *testing.T) *shared {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can run tasks as other users")
	}
	s := &shared{Server: harness.StartServer(t, "--headless"), t: t, dir: t.TempDir()}
	s.alice = must.Get(user.Lookup("nobody"))(t)
	s.mara = must.Get(user.Lookup("daemon"))(t)
	require.NoError(t, os.Chmod(filepath.Dir(s.dir), 0o711))
	rules := "rules:\n"
	for name, u := range map[string]*user.User{"alice": s.alice, "mara": s.mara} {
		home := filepath.Join(s.dir, name)
		require.NoError(t, os.Mkdir(home, 0o700))
		uid, gid := ids(t, u)
		require.NoError(t, os.Chown(home, uid, gid))
		rules += fmt.Sprintf("  - {signers: [unsigned], user: %s, directories: [%s]}\n", u.Username, home)
	}
	rules += fmt.Sprintf("  - {signers: [unsigned], user: no-such-user, directories: [%s]}\n", filepath.Join(s.dir, "nowhere"))
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "nowhere"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "policy.yaml"), []byte(rules), 0o600))
	s.worker = s.StartWorker(t, "--listen", "127.0.0.1", "--policy", filepath.Join(s.dir, "policy.yaml"))
	return s
}

func ids(t *testing.T, u *user.User) (uid, gid int) {
	t.Helper()
	uid = must.Get(strconv.Atoi(u.Uid))(t)
	gid = must.Get(strconv.Atoi(u.Gid))(t)
	return uid, gid
}

// run runs a script on the host in a user's home.
func (s *shared) run(home, script string, flags ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	args := append([]string{"run", "--remote", "-n", "1", "--set", "placement_timeout=5s", "--dir", filepath.Join(s.dir, home)}, flags...)
	return s.CLI(s.t, append(args, "--", "bash", "-c", script)...)
}

func text(stdout string) string { return strings.ReplaceAll(stdout, "[worker-0]:    ", "") }

func TestTasksRunAsTheUserOfThePolicy(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	uid, gid := ids(t, s.alice)

	entry := must.Get(exec.CommandContext(t.Context(), "getent", "passwd", s.alice.Username).Output())(t)
	fields := strings.Split(strings.TrimSpace(string(entry)), ":")
	shell := fields[len(fields)-1]
	code, stdout, stderr := s.run("alice", `
id -u; id -g; umask; pwd; echo "$HOME $USER $LOGNAME $SHELL"
echo "of root's: $(env | grep -c root)"
touch made; stat -c '%u %g' made
echo '{"message": {"message": "no"}}' > $CLUSTERRUN_ERROR_FILE
for f in $CLUSTERRUN_LOG_DIR $CLUSTERRUN_LOG_DIR/stdout.log $CLUSTERRUN_SOCKET; do stat -c '%U %a' $f; done`, "--id", "hers")
	require.Zero(t, code, stderr)
	assert.Equal(t, strings.Join([]string{
		s.alice.Uid, s.alice.Gid, "0022", filepath.Join(s.dir, "alice"),
		strings.Join([]string{s.alice.HomeDir, s.alice.Username, s.alice.Username, shell}, " "),
		"of root's: 0", s.alice.Uid + " " + s.alice.Gid,
		s.alice.Username + " 700", s.alice.Username + " 600", s.alice.Username + " 600", "",
	}, "\n"), text(stdout))

	// All of the run's files belong to her and only she may read them, except the note from which
	// the host worker can tell when the logs may be removed.
	logs := filepath.Join(s.worker.State, "logs", "hers")
	seen := 0
	require.NoError(t, filepath.WalkDir(logs, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if path == logs || filepath.Dir(path) == logs && filepath.Ext(path) == ".json" {
			return nil // it contains runs of any user with this ID
		}
		info := must.Get(d.Info())(t)
		stat := info.Sys().(*syscall.Stat_t)
		assert.Equal(t, [2]int{uid, gid}, [2]int{int(stat.Uid), int(stat.Gid)}, path)
		if filepath.Base(path) != "error.json" { // which she created herself
			assert.Zero(t, info.Mode().Perm()&0o077, path)
		}
		seen++
		return nil
	}))
	assert.Greater(t, seen, 4)

	// One user does not exist on the host, and one cannot access the directory.
	code, _, stderr = s.run("nowhere", "true")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, `this host has no user "no-such-user"`)
	require.NoError(t, os.Chmod(filepath.Join(s.dir, "alice"), 0))
	require.NoError(t, os.Chown(filepath.Join(s.dir, "alice"), 0, 0))
	code, _, stderr = s.run("alice", "true")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "working directory "+filepath.Join(s.dir, "alice"))
	assert.Contains(t, stderr, "permission denied")
}

// One user's task tries to reach the host worker's and another user's files and sockets. Their
// owners can reach them.
func TestTasksOfAnotherUserGetNowhere(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	told := filepath.Join(s.dir, "alice", "told")
	hers := s.start("alice", "hers", harness.Napping(`echo secret; echo $CLUSTERRUN_SOCKET $CLUSTERRUN_LOG_DIR $PPID > `+told+`; until [ -e `+s.dir+`/alice/go ]; do nap; done`))
	var of []string
	harness.Eventually(t, "her task runs", func() bool {
		require.False(t, hers.Exited(), hers.Stderr())
		b, _ := os.ReadFile(told)
		of = strings.Fields(string(b))
		return len(of) == 3
	})
	socket, logs, supervisor := of[0], of[1], of[2]
	worker := filepath.Join(s.worker.State, "worker")
	probes := fmt.Sprintf(`
for f in %[4]s %[4]s/journal %[4]s/plans %[2]s; do ls $f >/dev/null 2>&1 && echo "lists $f"; done
for f in %[4]s/instance %[4]s/hostservice.pem %[2]s/stdout.log; do cat $f >/dev/null 2>&1 && echo "reads $f"; done
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' %[1]s 2>/dev/null && echo "asks as the task"
for p in $$ %[3]s; do
	for f in environ mem maps; do (: </proc/$p/$f) 2>/dev/null && echo "opens $f of $p"; done
	kill -0 $p 2>/dev/null && echo "may signal $p"
done
mv %[1]s %[1]s.moved 2>/dev/null && mv %[1]s.moved %[1]s && echo "moves the socket"
echo "is $$"`, socket, logs, supervisor, worker)
	itself := func(out string) []string {
		_, pid, _ := strings.Cut(strings.TrimSpace(out), "is ")
		return []string{"opens environ of " + pid, "opens mem of " + pid, "opens maps of " + pid, "may signal " + pid}
	}
	code, stdout, stderr := s.run("mara", probes)
	require.Zero(t, code, stderr)
	got := strings.Split(strings.TrimSpace(text(stdout)), "\n")
	assert.Equal(t, itself(stdout), got[:len(got)-1], "nothing but her own")

	code, stdout, stderr = s.run("alice", probes)
	require.Zero(t, code, stderr)
	got = strings.Split(strings.TrimSpace(text(stdout)), "\n")
	assert.Equal(t, append([]string{"lists " + logs, "reads " + logs + "/stdout.log", "asks as the task"}, itself(stdout)...), got[:len(got)-1])

	out := must.Get(exec.CommandContext(t.Context(), "bash", "-c", probes).Output())(t)
	for _, line := range []string{
		"lists " + worker, "lists " + worker + "/journal", "lists " + worker + "/plans",
		"reads " + worker + "/instance", "reads " + worker + "/hostservice.pem", "may signal " + supervisor, "moves the socket",
	} {
		assert.Contains(t, string(out), line+"\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "alice", "go"), nil, 0o644))
	require.Zero(t, hers.ExitCode(), hers.Stderr())
}

// start starts a run in a user's home, and does not wait.
func (s *shared) start(home, id, script string) *harness.Process {
	s.t.Helper()
	return harness.Start(s.t, s.dir, harness.Env(s.dir, "TEMPORAL_ADDRESS="+s.Address),
		harness.Clusterrun(s.t), "run", "--remote", "-n", "1", "--dir", filepath.Join(s.dir, home), "--id", id, "--", "bash", "-c", script)
}

// The host worker, which is root, reads and writes files that a user may replace with links.
// These give access only to what the user can access anyway.
func TestLinksOfAUserLeadRootNowhere(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	secret := filepath.Join(s.dir, "secret")
	require.NoError(t, os.Mkdir(secret, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(secret, "text"), []byte(`{"message": "the secret"}`), 0o600))

	// Links replace its reports and its output.
	code, _, stderr := s.run("alice", fmt.Sprintf(`
ln -sf %[1]s/text $CLUSTERRUN_ERROR_FILE; ln -sf %[1]s/text $CLUSTERRUN_RESULT_FILE
ln -sf %[1]s/text $CLUSTERRUN_LOG_DIR/stderr.log; ln -sf %[1]s/times $CLUSTERRUN_LOG_DIR/times
exit 3`, secret), "--id", "links")
	assert.Equal(t, 3, code)
	// The command itself, typed by root, reads the logs on this machine as root.
	assert.Contains(t, stderr, "error.json: too many levels of symbolic links")
	run := s.Client().GetWorkflow(t.Context(), "links", "")
	r := harness.Result(t, run)
	assert.Equal(t, spec.VerdictFailed, r.Verdict)
	assert.NotContains(t, fmt.Sprintf("%+v %+v", r, r.FirstFailure), "the secret")

	// In the log directory that she specifies, either as a parent of the run's directory or instead
	// of it.
	require.NoError(t, os.Symlink(secret, filepath.Join(s.dir, "alice", "elsewhere")))
	code, _, stderr = s.run("alice", "true", "--log-dir", filepath.Join(s.dir, "alice", "elsewhere"))
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "does not allow the directory "+secret)
	logs := filepath.Join(s.dir, "alice", "logs")
	require.NoError(t, os.Mkdir(logs, 0o777))
	require.NoError(t, os.Symlink(secret, filepath.Join(logs, "through")))
	uid, gid := ids(t, s.alice)
	require.NoError(t, os.Chown(logs, uid, gid))
	code, _, stderr = s.run("alice", "true", "--log-dir", logs, "--id", "through")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "log directory "+logs+"/through")
	left := must.Get(os.ReadDir(secret))(t)
	assert.Len(t, left, 1, "nothing was written there")

	// Without links it is hers, and a group's that she specifies only if she is a member.
	code, _, stderr = s.run("alice", "true", "--log-dir", logs, "--id", "fine")
	assert.Zero(t, code, stderr)
	code, _, stderr = s.run("alice", "true", "--set", "logs.group=root")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "the user "+s.alice.Username+" is not in the group root")
}

// Another user of the machine finds only the server's port, and can neither list runs nor start
// programs as its owner.
func TestAnotherUserOfTheMachine(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	l := newLocal(t)
	l.ok("run", "-n", "1", "--", "true")
	address := l.server().Address

	h := newStranger(t)
	asNobody := func(args ...string) (int, string) {
		t.Helper()
		code, stdout, stderr := h.run(nil, args...)
		require.NotZero(t, code, stdout+stderr)
		return code, stdout + stderr
	}
	for _, args := range [][]string{{"list"}, {"status", "true-1"}, {"run", "--remote", "-n", "1", "--", "id"}} {
		code, said := asNobody(append([]string{h.program, "--address", address}, args...)...)
		assert.Equal(t, 125, code, said)
		// The server closes the connection, or resets it if it did not read all the input.
		assert.Regexp(t, "(no connection to the Temporal server|no Temporal server) at "+address, said, args)
	}
	_, said := asNobody("cat", filepath.Join(l.state(), "server", "key.pem"))
	assert.Contains(t, said, "Permission denied")
}

// copyProgram copies a program with cp. This process must not open it for writing, because a
// parallel test's child could inherit the open file, and a file open for writing cannot be
// executed.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cp", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}

// A container may run under any user ID, without a name in the password file or the environment.
func TestUserWithoutAName(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	h := newStranger(t)
	const unknown = 4000000
	require.NoError(t, os.Chown(h.home, unknown, unknown))
	h.credential = &syscall.Credential{Uid: unknown, Gid: unknown}
	server := h.path("clusterrun-devserver")
	copyProgram(t, harness.Devserver(t), server)
	// It also works without HOME, if CLUSTERRUN_STATE_DIR is set.
	p := harness.StartAs(t, h.credential, h.home, []string{"PATH=" + os.Getenv("PATH"), "CLUSTERRUN_STATE_DIR=" + h.path("state")},
		h.program, "run", "-n", "1", "--", "id", "-u")
	require.Zero(t, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stdout(), "4000000")
}
