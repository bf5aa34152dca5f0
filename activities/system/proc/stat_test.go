package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestParseStat(t *testing.T) {
	s := must.Get(parseStat([]byte("42 (a) b (c)) S 7 42 41 0 -1 4194560 1 2 3 4 150 50 9 8 20 0 12 0 987654 1 2 3\n")))(t)
	ms := time.Millisecond
	assert.Equal(t, Stat{
		Name: "a) b (c)", State: 'S', PPID: 7, Group: 42, Session: 41, Threads: 12, Ticks: 987654,
		User: 1500 * ms, System: 500 * ms, ChildUser: 90 * ms, ChildSystem: 80 * ms, RSS: 2,
	}, s)
	for _, bad := range []string{
		"", "42", "42 (x", "42 (x) S 1", ")(", "42 (x) SS" + strings.Repeat(" 1", 30), "42 (x) S" + strings.Repeat(" x", 30),
		"77 (x) S 1 2 3 0 -1 0 1 2 3 4 x 6 7 8 20 0 1 0 12345 6 7", "77 (x) S 1 2 3 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 12345 6",
	} {
		_, err := parseStat([]byte(bad))
		assert.Error(t, err, bad)
	}
	assert.True(t, Stat{State: 'Z', Threads: 1}.Dead())
	assert.False(t, Stat{State: 'Z', Threads: 3}.Dead(), "only its main thread has ended")
}

func TestReadStat(t *testing.T) {
	var buf [1024]byte
	for _, read := range []func() (Stat, error){
		func() (Stat, error) { return ReadStat(os.Getpid()) },
		func() (Stat, error) { return ReadStatInto(os.Getpid(), buf[:]) },
	} {
		s := must.Get(read())(t)
		assert.Equal(t, os.Getppid(), s.PPID)
	}
	pids := must.Get(PIDs())(t)
	assert.Contains(t, pids, os.Getpid())
	assert.NotEmpty(t, BootID())
}

func TestEnviron(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"XA=no", "A=1 2"}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	env := must.Get(Environ(cmd.Process.Pid))(t)
	assert.Contains(t, env, "XA=no")
	assert.Equal(t, "1 2", Variable(cmd.Process.Pid, "A"))
	assert.Empty(t, Variable(cmd.Process.Pid, "B"))
	assert.Empty(t, Variable(1<<30, "A"))
}

// A process that executes one program after another always has its variables.
func TestEnvironOfAProcessThatExecutes(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n[ $1 = 0 ] || exec \"$0\" $(($1-1))\n"), 0o700))
	cmd := exec.CommandContext(t.Context(), script, "60")
	cmd.Env = append(os.Environ(), "MARK=here")
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	reads := 0
	for {
		environ, err := Environ(cmd.Process.Pid)
		if stat, gone := ReadStat(cmd.Process.Pid); err != nil || gone != nil || stat.Dead() {
			break // the environment of an exiting process is an error
		}
		require.Contains(t, environ, "MARK=here")
		reads++
	}
	require.NoError(t, <-ended)
	require.Positive(t, reads)
}

func TestEnvironOfOthers(t *testing.T) {
	environ := must.Get(Environ(os.Getpid()))(t)
	assert.Contains(t, environ, "PATH="+os.Getenv("PATH"))
	_, err := Environ(-1)
	require.Error(t, err)
	assert.Empty(t, Variable(-1, "PATH"))

	none := exec.CommandContext(t.Context(), "sleep", "1000")
	none.Env = []string{}
	require.NoError(t, none.Start())
	assert.Empty(t, Variable(none.Process.Pid, "PATH"))
	require.NoError(t, none.Process.Kill())
	_ = none.Wait()
	_, known := environSize(none.Process.Pid)
	assert.False(t, known)
}
