package hostuser

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/must"
)

func nobody(t *testing.T) *User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	u := must.Get(Lookup(t.Context(), "nobody"))(t)
	require.NotZero(t, u.UID)
	return u
}

func TestLookup(t *testing.T) {
	me := must.Get(Lookup(t.Context(), strconv.Itoa(os.Geteuid())))(t)
	require.Nil(t, me, "this process runs as that user already")
	for name, says := range map[string]string{
		"no-such-user": `this host has no user "no-such-user"`, "4294967295": "this host has no user", "": "this host has no user",
		"-h": `this host has no user "-h"`, "a:b": "this host has no user",
	} {
		_, err := Lookup(t.Context(), name)
		require.ErrorContains(t, err, says, name)
	}
	byName := nobody(t)
	byNumber := must.Get(Lookup(t.Context(), strconv.Itoa(int(byName.UID))))(t)
	require.Equal(t, byName, byNumber)
	require.Contains(t, byName.Groups, byName.GID)
}

func TestEntries(t *testing.T) {
	u := must.Get(parse("alice:x:1000:1001:Alice:/home/alice:/bin/bash"))(t)
	require.Equal(t, &User{Name: "alice", UID: 1000, GID: 1001, Home: "/home/alice", Shell: "/bin/bash"}, u)
	u = must.Get(parse("alice:x:1000:1001:::"))(t)
	require.Equal(t, "/", u.Home)
	require.Equal(t, "/bin/sh", u.Shell)
	for _, bad := range []string{"", "alice:x:1000:1001:Alice:/home/alice", "alice:x:-1:1001:::", "alice:x:1000:4294967296:::"} {
		_, err := parse(bad)
		require.Error(t, err, bad)
	}
}

func TestTheNumberOfRootByAnotherName(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Run("root", func(t *testing.T) {
			for _, name := range []string{"root", "0"} {
				u := must.Get(Lookup(t.Context(), name))(t)
				require.Nil(t, u)
			}
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\necho toor:x:0:0::/root:/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	_, err := Lookup(t.Context(), "toor")
	require.EqualError(t, err, "the user toor has root's ID; to use root, name root")
}

// A directory service that hangs, and has started a process that hangs, does not block the caller.
func TestQuestionsAreBounded(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\n/bin/sleep 1000 &\necho $! > "+dir+"/pid\nwait\n"), 0o755))
	t.Setenv("PATH", dir)
	t.Cleanup(func() {
		pid := must.Get(os.ReadFile(filepath.Join(dir, "pid")))(t)
		n := must.Get(strconv.Atoi(strings.TrimSpace(string(pid))))(t)
		require.NoError(t, unix.Kill(n, unix.SIGKILL))
	})
	_, err := askWithin(t.Context(), time.Second, "getent", "passwd", "--", "alice")
	require.ErrorContains(t, err, "getent has not answered in time")
}

// Actions as a user have that user's rights, and all other actions have ours.
func TestDo(t *testing.T) {
	u := nobody(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("root's"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "theirs"), 0o700))
	require.NoError(t, os.Lchown(filepath.Join(dir, "theirs"), int(u.UID), int(u.GID)))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "theirs", "link")))

	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			mine := filepath.Join(dir, "theirs", strconv.Itoa(i))
			err := u.Do(func() error {
				_, err := os.ReadFile(filepath.Join(dir, "theirs", "link"))
				assert.ErrorIs(t, err, fs.ErrPermission)
				assert.ErrorIs(t, os.WriteFile(filepath.Join(dir, "more"), nil, 0o600), fs.ErrPermission)
				assert.ErrorIs(t, Access(secret, unix.R_OK), fs.ErrPermission)
				return os.WriteFile(mine, nil, 0o600)
			})
			assert.NoError(t, err)
			var stat unix.Stat_t
			assert.NoError(t, unix.Stat(mine, &stat))
			assert.Equal(t, [2]uint32{u.UID, u.GID}, [2]uint32{stat.Uid, stat.Gid})
			_, err = os.ReadFile(secret)
			assert.NoError(t, err, "root is root again")
		})
	}
	all.Wait()
	wrong := errors.New("wrong")
	require.Equal(t, wrong, u.Do(func() error { return wrong }))
	require.Equal(t, wrong, (*User)(nil).Do(func() error { return wrong }))
}

func TestEnviron(t *testing.T) {
	require.Equal(t, []string{"A=b", `C=d`, "E=f=g", "H="}, parseEnvironment("# x\nA=b\n export C='d' # y\n\nE=\"f=g\"\nH=\nnothing\n=x\n"))
	u := &User{Name: "alice", Home: "/home/alice", Shell: "/bin/bash"}
	env := u.Environ([]string{"AWS_SECRET_ACCESS_KEY=x", "HOME=/root", "PATH=/root/bin", "LANG=C", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=1", "LD_PRELOAD=x"})
	for _, kv := range []string{"LANG=C", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=1", "HOME=/home/alice", "USER=alice", "LOGNAME=alice", "SHELL=/bin/bash"} {
		require.Contains(t, env, kv)
	}
	for _, kv := range []string{"AWS_SECRET_ACCESS_KEY=x", "HOME=/root", "PATH=/root/bin", "LD_PRELOAD=x"} {
		require.NotContains(t, env, kv)
	}
	require.Equal(t, []string{"A=b"}, (*User)(nil).Environ([]string{"A=b"}))
}

func failsInside() error { panic("no") }

// A panic reaches the caller of Do, with the stack of its origin.
func TestPanicInDo(t *testing.T) {
	u := nobody(t)
	defer func() {
		text, ok := recover().(string)
		require.True(t, ok)
		assert.True(t, strings.HasPrefix(text, "no\n"), text)
		assert.Contains(t, text, "hostuser.failsInside")
	}()
	_ = u.Do(failsInside)
	t.Fatal("it has not panicked")
}
