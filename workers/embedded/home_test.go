package embedded

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that has run for long and has no ready file is not waited for as if it were starting.
func TestALostReadyFileIsNotAwaited(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	require.NoError(t, os.WriteFile(h.dbLock(), nil, 0o600))
	assert.Equal(t, settleBound, h.patience())
	old := time.Now().Add(-2 * settleBound)
	require.NoError(t, os.Chtimes(h.dbLock(), old, old))
	assert.Equal(t, stopBound, h.patience())
}
