package embedded

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With `ulimit -n 20` a server neither became ready nor said why, three times for a
// minute.
func TestAServerThatCannotOpenItsFilesIsNotStarted(t *testing.T) {
	if os.Getenv("EMBEDDED_TEST_LIMITED") == "" {
		cmd := exec.Command("sh", "-c", `ulimit -n 20 && exec "$0" -test.run="$1"`, os.Args[0], t.Name())
		cmd.Env = append(os.Environ(), "EMBEDDED_TEST_LIMITED=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	_, err := newHome(t).Ensure(t.Context(), "")
	assert.EqualError(t, err, "the embedded server needs 40 open files, and a process may have 20 here; raise that limit: ulimit -n")
}
