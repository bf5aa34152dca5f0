package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

// newPlace is a place with a server, and clusterrun there.
func newPlace(b *testing.B) (*measure.Place, *measure.Launcher) {
	b.Helper()
	dir := b.TempDir()
	p := &measure.Place{Dir: dir, Env: harness.Env(dir)}
	server, err := embedded.Home{Dir: filepath.Join(p.StateDir(), "server")}.StartForeground(b.Context(), 0, 0, "--headless")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop(context.Background())) })
	return p, measure.Clusterrun(harness.Clusterrun(b), p.StateDir(), func() []int { return []int{server.PID} })
}

// stopOwnServer ends the server that runs in this home brought up, by its pid.
func stopOwnServer(b *testing.B, home string) {
	b.Helper()
	files, _ := filepath.Glob(filepath.Join(home, ".local/state/clusterrun/server/ready*.json"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(b, err)
		var ready struct{ PID int }
		require.NoError(b, json.Unmarshal(text, &ready))
		_ = syscall.Kill(ready.PID, syscall.SIGTERM)
		harness.Eventually(b, "the own server has ended", func() bool { return harness.State(ready.PID) == "" || harness.State(ready.PID) == "Z" })
	}
}
