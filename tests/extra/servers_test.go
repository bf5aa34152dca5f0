package extra

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks survive when PostgreSQL and Temporal's own server are killed, and then their run finishes
// as usual.
func TestPostgreSQL(t *testing.T) {
	s := harness.StartTemporal(t)
	s.StartWorker(t)
	_, said, _ := s.CLI(t, "doctor")
	assert.Contains(t, said, "all search attributes of runs are registered")

	dir := t.TempDir()
	s.OK(t, "submit", "--id", "survives", "-n", "2", "--dir", dir, "--", "bash", "-c",
		harness.Napping(`echo $$ >> pid-$RANK; until [ -e go ]; do nap; done; echo '"done"' > "$CLUSTERRUN_RESULT_FILE"`))
	pids := func() (pids []string) {
		for rank := range 2 {
			text, _ := os.ReadFile(filepath.Join(dir, "pid-"+strconv.Itoa(rank)))
			pids = append(pids, string(text))
		}
		return pids
	}
	harness.Eventually(t, "both run", func() bool { return pids()[0] != "" && pids()[1] != "" })
	s.Database.Kill()
	s.Database.Restart()
	s.Kill()
	s.Restart()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	r := harness.Result(t, s.Client().GetWorkflow(t.Context(), "survives", ""))
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for i, pid := range pids() {
		assert.Equal(t, strconv.Itoa(r.Tasks[i].Exit.PID)+"\n", pid, "started once")
		assert.Equal(t, `"done"`, string(r.Tasks[i].Value))
	}
}

// Workflows in TypeScript, with Temporal's SDK from npm, execute runs.
func TestExampleTypeScript(t *testing.T) {
	modules := os.Getenv("CLUSTERRUN_NODE_MODULES")
	if modules == "" {
		t.Skip("no packages from npm: `make typescript` installs them and runs this test")
	}
	s := harness.StartServer(t, "--headless")
	s.StartWorker(t, "--slots", "8")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(harness.Root(), "starter/examples/typescript"))))
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	p := harness.Start(t, dir, append(os.Environ(), "TEMPORAL_ADDRESS="+s.Address), "node", "main.js", "sh", "-c", "exit 3")
	require.Zero(t, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stdout(), "failed, exit code 3, 2 tasks\n")
}
