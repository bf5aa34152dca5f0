package supervisor

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The advice to kill a supervisor mentions that its tasks die with it. If the holder is
// unknown, the advice does not name process 0, which would be the whole process group.
func TestWhoeverHoldsAStateDirectoryIsNamedWithItsTasks(t *testing.T) {
	dir := t.TempDir()
	lock, err := tryLock(dir, roleSupervisor)
	require.NoError(t, err)
	defer lock.Close()
	_, err = waitLock(dir)
	require.EqualError(t, err, fmt.Sprintf("the state directory %s is in use by the host worker with pid %d; "+
		"choose another state directory, or end that host worker with all its tasks: kill %d", dir, os.Getpid(), os.Getpid()))
	require.NoError(t, lock.Truncate(0))
	_, err = waitLock(dir)
	require.ErrorContains(t, err, "in use by another process")
	assert.NotContains(t, err.Error(), "kill")
	assert.NotContains(t, inUse(dir, 7, roleSweep).Error(), "kill")
}
