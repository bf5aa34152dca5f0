package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// canary is a word that cannot be read without the key.
const canary = "KANARIENVOGEL"

// keyFile creates a file with one key.
func keyFile(t *testing.T, id string) string {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte(id+" "+base64.StdEncoding.EncodeToString(key)+"\n"), 0o600))
	return file
}

// A canary in all of a run's strings is shown with the key, and occurs neither in the server's
// files nor in histories read without it. The temporal CLI shows it through clusterrun server codec.
func TestTheCodecHidesWhatRunsSay(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	keys := keyFile(t, "one")
	with := func(args ...string) []string { return append(args, "--codec-keys", keys) }
	run := l.start("run", "--codec-keys", keys, "--id", "hidden", "--task", "chief=1", "--task", "worker=1", "--env", "WORD="+canary,
		"--env", "PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"), "--env", "PYTHONDONTWRITEBYTECODE=1", "--", "bash", "-c", harness.Napping(`
		[ $CLUSTERRUN_TASK != chief-0 ] || python3 -c "import clusterrun, os
c = clusterrun.ClusterCoordinator()
c.schedule('nobody_serves_this', args=(os.environ['WORD'],))"
		"$0" task progress 1 2 "at $WORD"
		until [ -e "$1/go" ]; do nap; done
		case $CLUSTERRUN_TASK in
		worker-0) "$0" task result "\"$WORD\"";;
		*) "$0" task error "it was $WORD"; exit 3;;
		esac`), harness.Clusterrun(t), l.home, canary)
	harness.Eventually(t, "the progress is shown", func() bool {
		_, stdout, _ := l.run(with("status", "hidden", "--json")...)
		return strings.Contains(stdout, "at "+canary)
	})
	l.goOn()
	require.Equal(t, 3, run.ExitCode(), run.Stderr())
	assert.Contains(t, run.Stderr(), "it was "+canary)
	assert.NotContains(t, run.Stderr(), "probably secret, judging by its name")
	assert.Contains(t, l.ok(with("status", "hidden")...), "it was "+canary)

	// Read without the key, and with a wrong key.
	for _, args := range [][]string{{"status", "hidden"}, {"wait", "hidden"}, {"wait", "hidden", "--codec-keys", keyFile(t, "two")}} {
		_, stdout, stderr := l.run(args...)
		assert.Contains(t, stdout+stderr, `the key "one"`, args)
		assert.NotContains(t, stdout+stderr, canary, args)
	}
	// An export that cannot be decoded names the key.
	export := filepath.Join(l.home, "hidden.tar.gz")
	_, stderr := l.succeeds("export", "-o", export, "hidden", "--codec-keys", keyFile(t, "two"))
	assert.Contains(t, stderr, `cannot read its spec: it is encoded with the key "one"; decode it with the keys in FILE: --codec-keys FILE`)
	unpacked := t.TempDir()
	require.NoError(t, exec.Command("tar", "-xzf", export, "-C", unpacked).Run())
	assert.Contains(t, readFile(t, filepath.Join(unpacked, "hidden", "README")), `There is no spec.yaml: it is encoded with the key "one"`)
	for _, name := range []string{"account.json", "history.json"} {
		assert.NotContains(t, readFile(t, filepath.Join(unpacked, "hidden", name)), canary)
	}
	_, _, stderr = l.run("diff", "hidden", "hidden", "--codec-keys", keyFile(t, "two"))
	assert.Contains(t, stderr, `cannot read the spec of hidden: it is encoded with the key "one"`)

	t.Run("temporal", func(t *testing.T) {
		p := l.start("server", "codec", "--codec-keys", keys, "--listen", "127.0.0.1:0")
		harness.Eventually(t, "it serves", func() bool { return strings.Contains(p.Stdout(), "# in a browser") })
		show := func(variables string) string {
			shown := harness.Start(t, l.home, harness.Env(l.home, "CR="+harness.Clusterrun(t), "TEMPORAL="+harness.TemporalCLI(t), "VARIABLES="+variables),
				"bash", "-c", `eval "$("$CR" server env)" && eval "$VARIABLES" && "$TEMPORAL" workflow show -w hidden --detailed`)
			require.Zero(t, shown.ExitCode(), shown.Stderr())
			return shown.Stdout()
		}
		assert.Contains(t, show(p.Stdout()), canary)
		assert.NotContains(t, show(""), canary)
		p.Kill(syscall.SIGTERM)
		assert.Zero(t, p.ExitCode(), p.Stderr())
	})

	server, c := l.server(), l.dial()
	d := must.Get(c.DescribeWorkflowExecution(t.Context(), "hidden", ""))(t)
	seen := 0
	for _, id := range []string{"hidden", closure.QueueID("hidden", d.GetWorkflowExecutionInfo().GetExecution().GetRunId())} {
		for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); seen++ {
			e, err := events.Next()
			require.NoError(t, err, id)
			assert.NotContains(t, e.String(), canary)
		}
	}
	assert.Greater(t, seen, 20)

	require.NoError(t, syscall.Kill(server.PID, syscall.SIGTERM))
	harness.Eventually(t, "the server has ended", func() bool { s := harness.State(server.PID); return s == "" || s == "Z" })
	files := must.Get(filepath.Glob(filepath.Join(l.state(), "server", "*")))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		b := must.Get(os.ReadFile(file))(t)
		assert.NotContains(t, string(b), canary, file)
	}
}
