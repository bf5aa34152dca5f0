package specs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThisMachine(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	for _, name := range []string{"localhost", "127.0.0.1", "127.3.2.1", "::1", own} {
		assert.True(t, IsThisMachine(name), name)
	}
	for _, name := range []string{"elsewhere.example", "192.0.2.1"} {
		assert.False(t, IsThisMachine(name), name)
	}
}
