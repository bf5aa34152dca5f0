package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workers/connect"
)

// A server from the environment is named by its address.
func TestAServerIsNamedByItsAddress(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
	assert.Equal(t, "temporal.example:7233", Server{}.String())
	assert.Equal(t, "other:7233", Server{Options: connect.Options{Address: "other:7233"}}.String())
}
