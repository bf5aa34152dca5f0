package taskapi

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// ask sends a result to the socket of a task as a user, and returns the outcome.
func ask(t *testing.T, u *hostuser.User, path string) string {
	t.Helper()
	said := make(chan string)
	go func() {
		// To the kernel, this thread is a process of the user. It ends with the goroutine.
		runtime.LockOSThread()
		if u != nil {
			for _, call := range [][4]uintptr{
				{syscall.SYS_SETGROUPS}, {syscall.SYS_SETRESGID, uintptr(u.GID), uintptr(u.GID), uintptr(u.GID)},
				{syscall.SYS_SETRESUID, uintptr(u.UID), uintptr(u.UID), uintptr(u.UID)},
			} {
				if _, _, errno := syscall.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
					said <- errno.Error()
					return
				}
			}
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			said <- errors.Unwrap(errors.Unwrap(err)).Error()
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "PUT /v1/result HTTP/1.0\r\nHost: task\r\nContent-Length: 2\r\n\r\n42")
		answer, _ := io.ReadAll(conn)
		line, _, _ := strings.Cut(string(answer), "\r\n")
		said <- line
	}()
	return <-said
}

// A task that runs as another user reaches its own socket, and no other user's.
func TestTheSocketIsTheUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir, err := os.MkdirTemp("/tmp", "t")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	s, err := NewServer(Config{StateDir: dir})
	require.NoError(t, err)
	defer s.Close()
	alice, bob := &hostuser.User{Name: "alice", UID: 54321, GID: 54321}, &hostuser.User{Name: "bob", UID: 54322, GID: 54322}
	listen := func(run string, u *hostuser.User) (path, logs string) {
		logs = filepath.Join(dir, "logs-"+run)
		require.NoError(t, os.Mkdir(logs, 0o700))
		if u != nil {
			require.NoError(t, os.Lchown(logs, int(u.UID), int(u.GID)))
		}
		path, err := s.Listen(Task{
			ID: runkey.Task{Run: runkey.Run{WorkflowID: run}, Task: "worker-0"}, User: u, LogDir: logs, View: &View{Members: []Member{{Task: "worker-0"}}},
		})
		require.NoError(t, err)
		return path, logs
	}
	hers, logs := listen("hers", alice)
	his, _ := listen("his", bob)
	ours, _ := listen("ours", nil)

	assert.Equal(t, "HTTP/1.0 200 OK", ask(t, alice, hers))
	info, err := os.Stat(filepath.Join(logs, tasklog.ResultFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.Equal(t, alice.UID, info.Sys().(*syscall.Stat_t).Uid, "the file is hers")
	for _, path := range []string{his, ours} {
		assert.Equal(t, "permission denied", ask(t, alice, path))
	}
	assert.Equal(t, "HTTP/1.0 200 OK", ask(t, nil, his), "root is let in")

	// A user who gets access to another's socket is still not served.
	require.NoError(t, os.Chmod(his, 0o777))
	assert.Empty(t, ask(t, alice, his))
	assert.Equal(t, "HTTP/1.0 200 OK", ask(t, bob, his))

	// The user can neither change the directory nor list it.
	cmd := exec.Command("sh", "-c", `rm -f "$0"; ls "$(dirname "$0")"; echo x >"$0.new"; true`, hers)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: alice.Credential()}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(out), "ermission denied"), string(out))

	// If a link has replaced the log directory, the host worker does not write elsewhere.
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.Mkdir(secret, 0o700))
	require.NoError(t, os.RemoveAll(logs))
	require.NoError(t, os.Symlink(secret, logs))
	assert.Equal(t, "HTTP/1.0 500 Internal Server Error", ask(t, alice, hers))
	left, err := os.ReadDir(secret)
	require.NoError(t, err)
	assert.Empty(t, left)
}
