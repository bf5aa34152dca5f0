package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
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
for f in %[4]s %[4]s/plans %[2]s; do ls $f >/dev/null 2>&1 && echo "lists $f"; done
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
		"lists " + worker, "lists " + worker + "/plans",
		"reads " + worker + "/instance", "reads " + worker + "/hostservice.pem", "may signal " + supervisor, "moves the socket",
	} {
		assert.Contains(t, string(out), line+"\n")
	}
	for want, flags := range map[string][]string{
		"the user " + s.alice.Username + " is not in the group root": {"alice", "logs.group=root"}, `this host has no user "no-such-user"`: {"nowhere", "timeout=1h"},
	} {
		code, _, stderr = s.run(flags[0], "true", "--set", flags[1])
		assert.NotZero(t, code)
		assert.Contains(t, stderr, want)
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

// copyProgram copies a program with cp. This process must not open it for writing, because a
// parallel test's child could inherit the open file, and a file open for writing cannot be
// executed.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cp", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}
