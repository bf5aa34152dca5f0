package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// another returns a user missing from the host's files, and a host with a directory that the user
// can reach.
func another(t *testing.T) (*host, *hostuser.User) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	h := newHost(t, nil)
	require.NoError(t, os.Chmod(filepath.Dir(h.dir), 0o711))
	require.NoError(t, os.Chmod(h.dir, 0o777))
	return h, &hostuser.User{Name: "somebody", UID: 54321, GID: 54322, Groups: []uint32{54322, 54323}, Home: h.dir, Shell: "/bin/sh"}
}

func TestAsAnotherUser(t *testing.T) {
	h, u := another(t)
	as := func(task string, number int, script string) StartRequest {
		r := h.request(task, number, script)
		r.Command.User = u
		// The directories that the user cannot make already exist.
		require.NoError(t, os.MkdirAll(filepath.Dir(r.Command.LogDir), 0o711))
		require.NoError(t, os.MkdirAll(r.Command.LogDir, 0o700))
		require.NoError(t, os.Lchown(r.Command.LogDir, int(u.UID), int(u.GID)))
		return r
	}
	start := func(r StartRequest) Process {
		p := h.launch(r)
		return p
	}

	t.Run("what it is", func(t *testing.T) {
		r := as("is", 0, `id -u; id -g; id -G; umask; pwd; grep -E "^(Uid|Gid|Groups|CapEff|CapPrm|CapAmb)" /proc/self/status; echo x >$D/made; echo again >/dev/stdout; echo mine >/dev/stderr; echo too >&2`)
		p := start(r)
		require.Equal(t, "somebody", p.User)
		require.Zero(t, h.wait("is", 0).Code)
		raw := must.Get(os.ReadFile(r.Command.Stdout))(t)
		require.Equal(t, strings.Join([]string{
			"54321", "54322", "54322 54323", "0022", h.dir,
			"Uid:\t54321\t54321\t54321\t54321", "Gid:\t54322\t54322\t54322\t54322", "Groups:\t54322 54323 ",
			"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "again", "",
		}, "\n"), string(raw))
		require.Equal(t, "mine\ntoo\n", must.Read(t, r.Command.Stderr))
		for path, mode := range map[string]uint32{r.Command.Stdout: 0o600, h.file("made"): 0o644} {
			var stat unix.Stat_t
			require.NoError(t, unix.Stat(path, &stat))
			require.Equal(t, []uint32{54321, 54322, unix.S_IFREG | mode}, []uint32{stat.Uid, stat.Gid, stat.Mode}, path)
		}
	})

	t.Run("nothing of root's", func(t *testing.T) {
		r := as("reads", 0, fmt.Sprintf(`
			for f in environ mem maps; do (: <"/proc/$PPID/$f") 2>/dev/null && head -c 1 /proc/$PPID/$f && echo read $f; done
			cat %[1]s/instance && echo read the state
			kill -0 $PPID && echo may signal; true`, h.role.Dir))
		start(r)
		require.Zero(t, h.wait("reads", 0).Code)
		require.Empty(t, must.Read(t, r.Command.Stdout))
	})

	t.Run("what is not open to it", func(t *testing.T) {
		closed := h.file("closed")
		require.NoError(t, os.Mkdir(closed, 0o700))
		for name, c := range map[string]struct {
			change func(*Command)
			text   string
		}{
			"dir":     {func(c *Command) { c.Dir = closed }, "working directory " + closed + ": permission denied"},
			"program": {func(c *Command) { c.Path = filepath.Join(closed, "x") }, "cannot execute " + closed},
			"log-dir": {func(c *Command) { c.LogDir = filepath.Join(closed, "logs") }, "making the log directory " + closed + "/logs: permission denied"},
			"stdout":  {func(c *Command) { c.Stdout = filepath.Join(closed, "out") }, "opening " + closed + "/out: permission denied"},
		} {
			r := as(name, 0, "true")
			c.change(&r.Command)
			p := start(r)
			require.NotNil(t, p.Exit, name)
			require.Contains(t, p.Exit.StartError, c.text, name)
		}
		left := must.Get(os.ReadDir(closed))(t)
		require.Empty(t, left)
	})

	t.Run("it dies with the supervisor", func(t *testing.T) {
		p := start(as("dies", 0, `(trap "" TERM HUP; exec setsid sleep 1000) & echo $$ >$D/up; exec sleep 1000`))
		h.pidIn("up")
		h.kill9()
		h.awaitCount("swept", 1)
		h.until("it is gone", func() bool { stat, err := proc.ReadStat(p.PID); return err != nil || stat.Dead() })
		require.Empty(t, h.cookied())
		h.start()
		reply := must.Get(h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("dies"), Fence: Fence{Attempt: 9}}))(t)
		require.Len(t, reply.Processes, 1)
		require.Equal(t, "somebody", reply.Processes[0].User, "the journal has it")
		require.True(t, reply.Processes[0].Exit.Lost)
	})
}

// Another user with write access to the log directory put links there that lead elsewhere.
func TestLinksInTheLogDirectoryLeadNowhere(t *testing.T) {
	h := newHost(t, nil)
	elsewhere := h.file("elsewhere")
	require.NoError(t, os.Mkdir(elsewhere, 0o755))
	root := h.file("root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "c", "attempt_0"), 0o755))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(root, "a")))
	require.NoError(t, os.Symlink("../../elsewhere", filepath.Join(root, "c", "attempt_1")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "stdout.log"), filepath.Join(root, "c", "attempt_0", "stdout.log")))
	for dir, says := range map[string]string{
		"a": "making the log directory " + root + "/a", "c/attempt_1/0": "making the log directory " + root + "/c/attempt_1/0",
		"c/attempt_0": "opening " + root + "/c/attempt_0/stdout.log",
	} {
		r := h.request(strings.ReplaceAll(dir, "/", "-"), 0, "echo it came through")
		r.Command.LogRoot, r.Command.LogDir = root, filepath.Join(root, dir)
		r.Command.Stdout, r.Command.Stderr = filepath.Join(root, dir, "stdout.log"), filepath.Join(root, dir, "stderr.log")
		p := h.launch(r)
		require.NotNil(t, p.Exit, dir)
		require.Contains(t, p.Exit.StartError, says)
		require.Contains(t, p.Exit.StartError, "path escapes from parent")
	}
	left := must.Get(os.ReadDir(elsewhere))(t)
	require.Empty(t, left)

	r := h.request("fine", 0, "echo it is here")
	r.Command.LogRoot, r.Command.LogDir = root, filepath.Join(root, "b", "0")
	r.Command.Stdout, r.Command.Stderr = filepath.Join(root, "b", "0", "stdout.log"), ""
	h.launch(r)
	require.Zero(t, h.wait("fine", 0).Code)
	require.Equal(t, "it is here\n", must.Read(t, r.Command.Stdout))
	for path, mode := range map[string]os.FileMode{filepath.Join(root, "b", "0"): 0o700, r.Command.Stdout: 0o600} {
		info := must.Get(os.Stat(path))(t)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}
