package specs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func TestThreadsAreSpokenOf(t *testing.T) {
	t.Setenv("OMP_NUM_THREADS", "")
	said := func(args ...string) string {
		s, err := specFrom(t, "", args...)
		require.NoError(t, err)
		var errs bytes.Buffer
		SayThreads((&cli.App{Err: &errs}), s)
		return errs.String()
	}
	assert.Equal(t, "clusterrun: OMP_NUM_THREADS is unset; using 1 per process, as torchrun does. Set it to tune your program\n",
		said("-n", "2", "python3", "train.py"))
	for _, args := range [][]string{
		{"-n", "1", "python3", "x"}, {"-n", "2", "true"}, {"-n", "2", "-x", "OMP_NUM_THREADS=4", "python3", "x"},
		{"-n", "2", "--cpus", "auto", "python3", "x"}, {"-n", "2", "--env-profile", "tensorflow", "python3", "x"},
	} {
		assert.Empty(t, said(args...), args)
	}
	t.Setenv("OMP_NUM_THREADS", "8")
	assert.Empty(t, said("-n", "2", "python3", "x"))
}
