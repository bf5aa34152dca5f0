package remotehosts

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scriptFile makes a program of a text for a shell.
func scriptFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return file
}

func TestAsk(t *testing.T) {
	ctx := context.Background()
	// An agent like ssh, to a host whose shell prints a greeting.
	agent := []string{scriptFile(t, `shift; echo welcome; exec sh -c "$1"`)}
	version, ahead, doubt, err := Ask(ctx, agent, "a", scriptFile(t, `echo "clusterrun 2 ($1)"`))
	require.NoError(t, err)
	assert.Equal(t, "clusterrun 2 (version)", version)
	assert.LessOrEqual(t, ahead.Abs(), doubt)
	assert.GreaterOrEqual(t, doubt, time.Second)

	// An agent to a host whose shell prints a lot before.
	loud := []string{scriptFile(t, `shift; head -c 1000000 /dev/zero; echo; exec sh -c "$1"`)}
	version, _, _, err = Ask(ctx, loud, "a", scriptFile(t, `echo "clusterrun 2 ($1)"`))
	require.NoError(t, err)
	assert.Equal(t, "clusterrun 2 (version)", version)

	t.Setenv("PATH", "/usr/bin:/bin")
	_, _, _, err = Ask(ctx, agent, "a", "/nowhere/clusterrun")
	require.ErrorContains(t, err, "no clusterrun in its PATH")

	_, _, _, err = Ask(ctx, []string{scriptFile(t, "echo no route >&2; exit 255")}, "a", "clusterrun")
	require.ErrorContains(t, err, "no route")

	_, _, _, err = Ask(ctx, []string{scriptFile(t, "echo welcome")}, "a", "clusterrun")
	require.ErrorContains(t, err, "its answer is not understood")

	_, _, _, err = Ask(ctx, []string{"/nowhere/ssh"}, "a", "clusterrun")
	require.ErrorContains(t, err, "/nowhere/ssh")

	ended, end := context.WithCancel(ctx)
	end()
	_, _, _, err = Ask(ended, agent, "a", "clusterrun")
	require.ErrorContains(t, err, "no answer in time")
}
