package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// A process that executes one program after the other always has its variables.
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
		got := Variable(cmd.Process.Pid, "MARK")
		if stat, err := ReadStat(cmd.Process.Pid); err != nil || stat.Dead() {
			break
		}
		require.Equal(t, "here", got)
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
