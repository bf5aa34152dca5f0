package devserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first build compiles every package, so a new version of Temporal that brings many
// more is noticed.
func TestHowManyPackagesThereAre(t *testing.T) {
	_, err := os.ReadFile("go.sum") // for the cache of tests: a result is one for these versions
	require.NoError(t, err)
	out, err := exec.Command("go", "list", "-deps", "./clusterrun-devserver").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	assert.Less(t, len(packages), 1300)
	for _, p := range packages {
		assert.False(t, strings.HasPrefix(p, "k8s.io/") || strings.HasPrefix(p, "google.golang.org/grpc/xds"), p)
	}
}
