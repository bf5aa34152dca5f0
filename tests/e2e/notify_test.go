package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/notices"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A webhook that fails is tried again, after the run has ended, and a command gets the notice of
// each restart.
func TestNotifications(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var ended atomic.Bool
	var tries atomic.Int32
	type request struct {
		header http.Header
		body   []byte
	}
	taken := make(chan request, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if tries.Add(1) <= 2 || !ended.Load() {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		taken <- request{r.Header, body}
	}))
	defer hook.Close()
	secret := filepath.Join(f.dir, "hook-key")
	require.NoError(t, os.WriteFile(secret, []byte("key of the hook\n"), 0o600))
	told := filepath.Join(f.dir, "told")
	run := f.start(&spec.RunSpec{
		Name: "told", AutoRestart: true, MaxRestarts: new(1), Tasks: []spec.TaskGroup{harness.Shell("worker", 1, "exit 3")},
		Notify: []spec.Notification{
			{Events: []spec.NotifyOn{spec.NotifyFailure}, Webhook: spec.Variable{Value: hook.URL + "/hush"}, Secret: spec.Source{FromFile: secret}},
			{Events: []spec.NotifyOn{spec.NotifyRestart}, Command: []string{"sh", "-c", `cat > "$0.tmp" && echo "$CLUSTERRUN_NOTICE_EVENT" >> "$0.tmp" && mv "$0.tmp" "$0"`, told}},
		},
	})
	result := harness.Result(t, run)
	ended.Store(true)
	got := <-taken
	assert.Equal(t, notices.Sign("key of the hook", got.header.Get("webhook-id"), got.header.Get("webhook-timestamp"), got.body), got.header.Get("webhook-signature"))
	notice := must.JSON[spec.Notice](t, got.body)
	assert.Equal(t, spec.NotifyFailure, notice.Event)
	assert.Equal(t, "run "+run.GetID()+" failed: "+result.Message, notice.Text)
	assert.Equal(t, notice.ID, got.header.Get("webhook-id"))
	assert.Equal(t, 3, *notice.ExitCode)

	harness.Eventually(t, "the command has run", func() bool {
		_, err := os.Stat(told)
		return err == nil
	})
	text := f.file("told")
	assert.Contains(t, text, `"event":"restart"`)
	assert.Contains(t, text, "worker-0 on host-a (rank 0) exited with exit code 3; the task restarted (attempt_1)")
	assert.Contains(t, text, "}restart\n")

	_, shown, _ := f.CLI(t, "show", run.GetID())
	assert.NotContains(t, shown, "hush")

	// Refused before anything starts.
	err := f.start(&spec.RunSpec{
		Tasks:  []spec.TaskGroup{harness.Shell("worker", 1, "touch $DIR/started")},
		Notify: []spec.Notification{{Command: []string{"no-such-program"}}, {Webhook: spec.Variable{From: spec.Source{FromFile: "/no/such/file"}}}},
	}).Get(t.Context(), nil)
	require.ErrorContains(t, err, "notify[0].command[0]: on host host-a: no-such-program: command not found")
	require.ErrorContains(t, err, "notify[1].webhook.from_file: on host host-a: /no/such/file: no such file or directory")
	assert.NoFileExists(t, filepath.Join(f.dir, "started"))
}

// The command that runs a cluster itself waits for its notices.
func TestRunAwaitsItsNotices(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notice")
	code, _, stderr := newLocal(t).run("run", "--notify", "sleep 0.3; cat > "+file, "--", "sh", "-c", "exit 4")
	assert.Equal(t, 4, code, stderr)
	body, err := os.ReadFile(file)
	require.NoError(t, err, stderr)
	assert.Contains(t, string(body), `failed: Subprocess worker-0 exited with exit code 4"`)
}
