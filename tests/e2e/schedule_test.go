package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The server starts runs of a schedule by itself and when it is asked, each under an ID of its own,
// and they are found as those that were submitted.
func TestScheduledRuns(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	s.StartWorker(t)
	runs := func(pattern string) (found []starter.Summary) {
		t.Helper()
		code, out, stderr := s.CLI(t, "list", "--json", "--name", pattern)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(out), &found))
		return found
	}

	code, out, stderr := s.CLI(t, "schedule", "create", "--json", "--id", "nightly", "--cron", "0 3 1 1 *", "--priority", "2", "--dir", t.TempDir(), "-n", "2", "--", "true")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, `"schedule_id": "nightly"`)
	assert.Regexp(t, `"next": \[\n +"\d{4}-01-01T03:00:00Z"`, out)
	assert.Contains(t, stderr, "clusterrun schedule delete nightly")
	assert.Empty(t, runs("nightly-*"), "none is due")

	code, _, stderr = s.Temporal(t, "schedule", "trigger", "--schedule-id", "nightly")
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
	code, out, stderr = s.CLI(t, "status", "nightly-")
	require.Zero(t, code, stderr)
	assert.True(t, strings.HasPrefix(out, "run "+run.RunID+": succeeded"), out)

	code, _, stderr = s.CLI(t, "schedule", "create", "--id", "nightly", "--every", "6h", "-n", "1", "--", "true")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, `a schedule "nightly" exists already`)
	code, _, stderr = s.CLI(t, "schedule", "create", "--cron", "99 * * * *", "-n", "1", "--", "true")
	assert.Equal(t, 2, code, stderr)
	assert.Contains(t, stderr, "the server refuses these times: ")
	code, _, stderr = s.CLI(t, "schedule", "create", "--cron", "0 3 * * *", "--timezone", "Nowhere/Atall", "-n", "1", "--", "true")
	assert.Equal(t, 2, code, stderr)

	code, out, stderr = s.CLI(t, "schedule", "create", "--id", "often", "--every", "1s", "--name", "tick", "--dir", t.TempDir(), "-n", "1", "--", "true")
	require.Zero(t, code, stderr)
	assert.Equal(t, "often\n", out)
	harness.Eventually(t, "two runs have succeeded that nobody asked for", func() bool {
		ended := 0
		for _, r := range runs("often-*") {
			if r.Verdict == spec.VerdictSucceeded {
				ended++
			}
		}
		return ended >= 2
	})
	code, out, stderr = s.CLI(t, "status", "often")
	require.Zero(t, code, stderr)
	assert.Regexp(t, `^run often-\d{4}-`, out, "the latest")

	code, out, stderr = s.CLI(t, "schedule", "pause", "often", "--reason", "holidays")
	require.Zero(t, code, stderr)
	assert.Equal(t, "paused: often\n", out)
	harness.Eventually(t, "the schedule is listed as paused", func() bool {
		_, out, _ := s.CLI(t, "schedule", "list")
		return strings.Contains(out, "paused") && strings.Contains(out, "holidays")
	})
	code, _, stderr = s.CLI(t, "schedule", "resume", "often")
	require.Zero(t, code, stderr)
	code, out, stderr = s.CLI(t, "schedule", "delete", "often", "--json")
	require.Zero(t, code, stderr)
	assert.JSONEq(t, `{"schedule_id": "often", "state": "deleted"}`, out)
	code, _, stderr = s.CLI(t, "schedule", "pause", "often")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, `no schedule "often"`)
}
