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

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// When it finishes, a run sends its webhook a signed notice, and retries failures.
func TestNotifications(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	var tries atomic.Int32
	type request struct {
		header http.Header
		body   []byte
	}
	taken := make(chan request, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if tries.Add(1) <= 2 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		taken <- request{r.Header, body}
	}))
	defer hook.Close()
	secret := filepath.Join(f.dir, "hook-key")
	require.NoError(t, os.WriteFile(secret, []byte("key of the hook\n"), 0o600))
	run := f.start(&spec.RunSpec{
		Name: "told", Tasks: []spec.TaskGroup{harness.Shell("worker", 1, "exit 3")},
		Notify: spec.Notification{Webhook: spec.Variable{Value: hook.URL + "/hush"}, Secret: spec.Source{FromFile: secret}},
	})
	result := harness.Result(t, run)
	assert.Empty(t, result.NoticeFailed)
	got := <-taken
	assert.Equal(t, activities.SignNotice("key of the hook", got.header.Get("webhook-id"), got.header.Get("webhook-timestamp"), got.body), got.header.Get("webhook-signature"))
	notice := must.JSON[spec.Notice](t, got.body)
	assert.Equal(t, spec.NotifyEnd, notice.Event)
	assert.Equal(t, "run "+run.GetID()+" failed: "+result.Message, notice.Text)
	assert.Equal(t, notice.ID, got.header.Get("webhook-id"))
	assert.Equal(t, 3, *notice.ExitCode)

	_, shown, _ := f.CLI(t, "show", run.GetID())
	assert.NotContains(t, shown, "hush")

	// Refused before anything starts.
	err := f.start(&spec.RunSpec{
		Tasks:  []spec.TaskGroup{harness.Shell("worker", 1, "touch $DIR/started")},
		Notify: spec.Notification{Webhook: spec.Variable{From: spec.Source{FromFile: "/no/such/file"}}},
	}).Get(t.Context(), nil)
	require.ErrorContains(t, err, "notify.webhook.from_file: on host host-a: /no/such/file: no such file or directory")
	assert.NoFileExists(t, filepath.Join(f.dir, "started"))
}
