package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// While the journal of a released run is read from a disk that hangs, the table is free.
func TestTheTableIsFreeWhileAReleasedRunIsRead(t *testing.T) {
	state := &State{dir: t.TempDir(), runs: map[string]*run{}}
	s := &supervisor{table: newTable(state)}
	path := state.releasedPath(runHash(testRun))
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	read := make(chan error, 1)
	go func() {
		_, err := s.Processes(t.Context(), testRun)
		read <- err
	}()
	disk, err := os.OpenFile(path, os.O_WRONLY, 0) // returns once the journal is being read
	require.NoError(t, err)
	free := s.mu.TryLock()
	assert.True(t, free)
	if free {
		s.mu.Unlock()
	}
	require.NoError(t, disk.Close())
	require.NoError(t, <-read)
}

// A run that is added while it is looked for on the disk is found.
func TestARunThatIsAddedMeanwhileIsFound(t *testing.T) {
	state := &State{dir: t.TempDir(), runs: map[string]*run{}}
	s := newTable(state)
	path := state.releasedPath(runHash(testRun))
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	found := make(chan *run)
	go func() {
		r := s.lockOrAddRun(testRun)
		s.mu.Unlock()
		found <- r
	}()
	disk, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	s.mu.Lock()
	added := newRun(runHash(testRun), testRun)
	s.runs[added.hash] = added
	s.mu.Unlock()
	require.NoError(t, disk.Close())
	assert.Same(t, added, <-found)
}

// A run whose lease takes long, for example on a disk that hangs, does not delay the leases of
// others.
func TestALeaseWaitsForNoOtherRun(t *testing.T) {
	state := &State{dir: t.TempDir(), volatile: true, runs: map[string]*run{}}
	require.NoError(t, os.Mkdir(filepath.Join(state.dir, journalDir), 0o700))
	s := &supervisor{table: newTable(state), cfg: Config{PortsLapse: defaultPortsLapse}, log: zap.NewNop()}
	slow := state.journalPath(runHash(testRun))
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	leased := make(chan error, 1)
	go func() {
		_, err := s.Lease(t.Context(), PortLeaseRequest{Run: testRun, Count: 1})
		leased <- err
	}()
	other := runkey.Run{Namespace: "n", WorkflowID: "other", RunID: "r"}
	reply, err := s.Lease(t.Context(), PortLeaseRequest{Run: other, Count: 1})
	require.NoError(t, err)
	assert.Len(t, reply.Ports, 1)
	assert.Empty(t, leased)
	disk, err := os.OpenFile(slow, os.O_RDONLY, 0) // returns once the lease is being written
	require.NoError(t, err)
	require.NoError(t, <-leased)
	require.NoError(t, disk.Close())
	for _, r := range s.runs {
		r.ports.Free()
	}
}
