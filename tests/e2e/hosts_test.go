package e2e

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Pinned tasks run on the host that their address names, all get the same cluster, and a
// failure on one host ends the tasks on the other.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.StartWorker(t, "--host-name", "host-b")
	f.StartWorker(t, "--host-name", "host-c")

	t.Run("success", func(t *testing.T) {
		f.t = t
		script := `env > $DIR/env-$CLUSTERRUN_TASK; echo "\"$CLUSTERRUN_HOST\"" > "$CLUSTERRUN_RESULT_FILE"`
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
			{Type: "worker", Addresses: []string{"host-b:28301", "host-c:28302", "host-b:28303"}, Command: []string{"bash", "-c", script}},
			{Type: "ps", Addresses: []string{"host-c"}, Command: []string{"bash", "-c", script}},
		}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		for name, host := range map[string]string{"worker-0": "host-b", "worker-1": "host-c", "worker-2": "host-b", "ps-0": "host-c"} {
			assert.Equal(t, host, task(r, name).Host, name)
			assert.Equal(t, `"`+host+`"`, string(task(r, name).Value), name)
		}
		env := environment(f.file("env-ps-0"))
		assert.Equal(t, "3", env["RANK"])
		assert.Equal(t, "1", env["LOCAL_RANK"])
		assert.Equal(t, "2", env["LOCAL_WORLD_SIZE"])
		assert.Equal(t, "1", env["GROUP_RANK"])
		assert.Equal(t, "2", env["GROUP_WORLD_SIZE"])
		assert.NotNil(t, net.ParseIP(env["MASTER_ADDR"]), "the names are none of this machine: %s", env["MASTER_ADDR"])
		other := environment(f.file("env-worker-0"))
		assert.Equal(t, env["MASTER_PORT"], other["MASTER_PORT"])
		assert.Equal(t, clusterOf(env["TF_CONFIG"]), clusterOf(other["TF_CONFIG"]))
		assert.Contains(t, env["TF_CONFIG"], strings.ReplaceAll(`["HOST:28301","HOST:28302","HOST:28303"]`, "HOST", env["MASTER_ADDR"]))
	})

	t.Run("failure", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
			{Type: "worker", Addresses: []string{"host-b:28301"}, Command: []string{"bash", "-c", `sleep 0.3; exit 5`}},
			{Type: "ps", Addresses: []string{"host-c:28302"}, Command: []string{"bash", "-c", `exec sleep 10000`}},
		}}))
		assert.Equal(t, 5, r.ExitCode)
		assert.Equal(t, "host-b", r.FirstFailure.Host)
		assert.Equal(t, spec.CauseCollateral, task(r, "ps-0").Exit.Cause)
	})

	// Both hosts are this machine.
	t.Run("two tasks that are pinned to one port are refused at once", func(t *testing.T) {
		f.t = t
		for _, one := range []string{"host-c:28303", "localhost:28303"} {
			run := f.start(&spec.RunSpec{Command: []string{"true"}, PlacementTimeout: spec.DurationOf(time.Hour), Tasks: []spec.TaskGroup{
				{Type: "worker", Addresses: []string{one}}, {Type: "ps", Addresses: []string{"host-b:28303"}},
			}})
			code, _, stderr := f.CLI(t, "wait", run.GetID())
			assert.Equal(t, 2, code)
			assert.Regexp(t, `(ps-0 and worker-0|worker-0 and ps-0) are both pinned to port 28303 of this machine; give each task its own port`, stderr)
		}
	})
}

func environment(text string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	return env
}

func clusterOf(tfConfig string) string {
	before, _, _ := strings.Cut(tfConfig, `"task"`)
	return before
}
