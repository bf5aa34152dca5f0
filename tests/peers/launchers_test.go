package peers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/peers"
)

// launcherBound is for Python's launchers, on a machine that does other work.
const launcherBound = 5 * time.Minute

// A launcher that is installed does the work that its entry has, and leaves no files.
func TestLaunchersDoWhatTheirEntriesSay(t *testing.T) {
	for _, peer := range peers.Launchers {
		t.Run(peer.Name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && peer.Name == "torchrun" {
				t.Skip("it imports torch ten times")
			}
			launcher := peer.Find()
			if launcher == nil {
				t.Skip("it is not installed")
			}
			temporary := t.TempDir()
			place := &measure.Place{Dir: t.TempDir(), Env: append(os.Environ(), "TMPDIR="+temporary)}
			ctx, cancel := context.WithTimeout(t.Context(), launcherBound)
			defer cancel()
			_, err := place.Launch(ctx, launcher, 3)
			require.NoError(t, err)
			if launcher.Restart != nil {
				_, err = place.Restart(ctx, launcher)
				require.NoError(t, err, "restart")
			}
			if launcher.End != nil {
				_, err = place.EndAfterFailure(ctx, launcher.End, 3)
				require.NoError(t, err, "end after a failure")
			}
			if launcher.Tee != nil {
				prefixes(ctx, t, place, launcher)
			}
			for _, dir := range []string{place.Dir, temporary} {
				left := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
				assert.Empty(t, left)
			}
		})
	}
}

// prefixes checks that each line of each copy has something before it.
func prefixes(ctx context.Context, t *testing.T, place *measure.Place, launcher *measure.Launcher) {
	t.Helper()
	const line = "costs $$5"
	out := filepath.Join(t.TempDir(), "out")
	argv := must.Get(launcher.Tee(t.TempDir(), 3, []string{"printf", line + `\n` + line + `\n`}))(t)
	_, err := place.Time(ctx, append([]string{"/bin/sh", "-c", `exec "$@" > "$0"`, out}, argv...))
	require.NoError(t, err)
	text := must.Get(os.ReadFile(out))(t)
	found := 0
	for l := range strings.Lines(string(text)) {
		if before, ok := strings.CutSuffix(strings.TrimSpace(l), line); ok && before != "" {
			found++
		}
	}
	assert.Equal(t, 6, found, string(text))
}
