package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/notices"
	"github.com/clusterrun/clusterrun/starter"
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

// The server starts runs of a schedule by itself and when it is asked, each under an ID of its own,
// and they are found as those that were submitted.
func TestScheduledRuns(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	s.StartWorker(t)
	runs := func(pattern string) (found []starter.Summary) {
		t.Helper()
		out := s.OK(t, "list", "--json", "--name", pattern)
		require.NoError(t, json.Unmarshal([]byte(out), &found))
		return found
	}

	out, stderr := s.Succeeds(t, "schedule", "create", "--json", "--id", "nightly", "--cron", "0 3 1 1 *", "--priority", "2", "--dir", t.TempDir(), "-n", "2", "--", "true")
	assert.Contains(t, out, `"schedule_id": "nightly"`)
	assert.Regexp(t, `"next": \[\n +"\d{4}-01-01T03:00:00Z"`, out)
	assert.Contains(t, stderr, "clusterrun schedule delete nightly")
	assert.Empty(t, runs("nightly-*"), "none is due")

	code, _, stderr := s.Temporal(t, "schedule", "trigger", "--schedule-id", "nightly")
	require.Zero(t, code, stderr)
	var found []starter.Summary
	harness.Eventually(t, "the run has succeeded", func() bool {
		found = runs("nightly-*")
		return len(found) > 0 && found[0].Verdict == spec.VerdictSucceeded
	})
	run := found[0]
	assert.Regexp(t, `^nightly-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, run.RunID)
	assert.Equal(t, "true", run.Command)
	assert.Equal(t, "worker=2", run.Tasks)
	assert.Equal(t, 2, run.Priority)
	assert.NotEmpty(t, run.Owner)
	assert.Equal(t, []string{"host-a"}, run.Hosts)
	out = s.OK(t, "status", "nightly-")
	assert.True(t, strings.HasPrefix(out, "run "+run.RunID+": succeeded"), out)

	assert.Contains(t, s.Fails(t, 2, "schedule", "create", "--id", "nightly", "--every", "6h", "-n", "1", "--", "true"), `a schedule "nightly" exists already`)
	assert.Contains(t, s.Fails(t, 2, "schedule", "create", "--cron", "99 * * * *", "-n", "1", "--", "true"), "the server refuses these times: ")
	s.Fails(t, 2, "schedule", "create", "--cron", "0 3 * * *", "--timezone", "Nowhere/Atall", "-n", "1", "--", "true")

	assert.Equal(t, "often\n", s.OK(t, "schedule", "create", "--id", "often", "--every", "1s", "--name", "tick", "--dir", t.TempDir(), "-n", "1", "--", "true"))
	harness.Eventually(t, "two runs have succeeded that nobody asked for", func() bool {
		ended := 0
		for _, r := range runs("often-*") {
			if r.Verdict == spec.VerdictSucceeded {
				ended++
			}
		}
		return ended >= 2
	})
	assert.Regexp(t, `^run often-\d{4}-`, s.OK(t, "status", "often"), "the latest")

	out = s.OK(t, "schedule", "pause", "often", "--reason", "holidays")
	assert.Equal(t, "paused: often\n", out)
	harness.Eventually(t, "the schedule is listed as paused", func() bool {
		_, out, _ := s.CLI(t, "schedule", "list")
		return strings.Contains(out, "paused") && strings.Contains(out, "holidays")
	})
	s.OK(t, "schedule", "resume", "often")
	assert.JSONEq(t, `{"schedule_id": "often", "state": "deleted"}`, s.OK(t, "schedule", "delete", "often", "--json"))
	code, _, stderr = s.CLI(t, "schedule", "pause", "often")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, `no schedule "often"`)
}
