package remotehosts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workers"
)

type noWorker struct{}

func (noWorker) StopAll(supervisor.StopAll) {}
func (noWorker) Stop(context.Context)       {}

// The home directory of a host may have a long name, which the path of a socket cannot.
func TestAHostWithALongHome(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := &service{ended: make(chan struct{})}
	s.Parent = filepath.Join(t.TempDir(), strings.Repeat("h", 100))
	socket := ""
	s.StartWorker = func(o workers.Options, _ *os.File, _ func(error)) (Worker, error) {
		socket = o.Server.Socket
		return noWorker{}, nil
	}
	require.NoError(t, s.startWorker(workers.Options{}, Facts{}))
	_, err := os.Stat(socket)
	require.NoError(t, err)
	s.close()
	_, err = os.Stat(filepath.Dir(socket))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing of the run is left")
	left, err := os.ReadDir(s.Parent)
	require.NoError(t, err)
	assert.Empty(t, left)
}
