package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks on two hosts meet at a barrier, despite outages of everything between them.
func TestTasksOfTwoHostsMeet(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	a := s.StartWorker(t, "--host-name", "host-a")
	s.StartWorker(t, "--host-name", "host-b")
	c := s.Client()
	dir := t.TempDir()
	script := fmt.Sprintf(`for i in 0 1 2; do
  while [ ! -e %[1]s/go-$CLUSTERRUN_TASK-$i ]; do nap; done
  %[2]s task barrier --json epoch >> %[1]s/out-$CLUSTERRUN_TASK 2>&1 || { echo code $? >> %[1]s/out-$CLUSTERRUN_TASK; exit 9; }
done`, dir, harness.Clusterrun(t))
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "meet", TaskQueue: spec.TaskQueue}, spec.WorkflowType, &spec.RunSpec{
		Command: harness.Bash(script),
		Tasks:   []spec.TaskGroup{{Type: "worker", Addresses: []string{"host-a:29111", "host-b:29112"}}},
	})
	require.NoError(t, err)
	let := func(task, round int) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("go-worker-%d-%d", task, round)), nil, 0o600))
	}
	waits := func(round int) {
		harness.Eventually(t, "a task waits", func() bool {
			_, out, _ := s.CLI(t, "status", "--barriers", "meet")
			return strings.Contains(out, fmt.Sprintf("barrier epoch, round %d: 1 waiting, 1 missing", round))
		})
	}
	let(0, 0)
	waits(1)
	let(1, 0)
	// While one task waits, its host's side is killed.
	let(0, 1)
	waits(2)
	require.NoError(t, syscall.Kill(a.Side(), syscall.SIGKILL))
	let(1, 1)
	// And the server.
	let(1, 2)
	waits(3)
	s.KillAndRestart(time.Second)
	let(0, 2)
	result := harness.Result(t, run)
	for i := range 2 {
		out, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out-worker-%d", i)))
		t.Logf("worker-%d:\n%s", i, out)
	}
	require.Equal(t, spec.VerdictSucceeded, result.Verdict, result.Message)
}
