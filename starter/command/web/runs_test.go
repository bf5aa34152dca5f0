package web

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestListQueries(t *testing.T) {
	v, err := url.ParseQuery("state=failed&user=ada%40node&name=ir%5Bis&since=1d&before=2026-03-14T12:00:00.5Z")
	require.NoError(t, err)
	q, err := parseListQuery(v)
	require.NoError(t, err)
	o := q.options()
	assert.Equal(t, `ir\[is*`, o.Name)
	assert.True(t, o.Failed)
	assert.Equal(t, "ada@node", o.Owner)
	assert.WithinDuration(t, time.Now().Add(-24*time.Hour), o.Since, time.Minute)
	assert.Equal(t, time.Date(2026, 3, 14, 12, 0, 0, 5e8, time.UTC), o.Until)
	assert.Equal(t, "/?name=ir%5Bis&since=1d&state=open&user=ada%40node", q.with("state", "open"), "the page is left out")
	assert.Equal(t, "/?name=ir%5Bis&since=1d&user=ada%40node", q.with("state", ""))
	for _, wrong := range []string{"state=x", "since=yesterday", "before=now", "since=-1h"} {
		v, _ := url.ParseQuery(wrong)
		_, err := parseListQuery(v)
		assert.Error(t, err, wrong)
	}
}

// A filter that only a link of a row sets can be withdrawn.
func TestFilters(t *testing.T) {
	q := listQuery{user: "ada@node", state: stateFailed}
	all := q.filters()
	last := all[len(all)-1]
	assert.Equal(t, page.Filter{Label: "User", Links: []page.Link{{Text: "User: ada@node ×", URL: "/?state=failed", Current: true}}}, last)
	for _, l := range all[0].Links {
		assert.Equal(t, l.Text == "Failed", l.Current, l.Text)
	}
}

func TestStatesInTheList(t *testing.T) {
	for _, c := range []struct {
		state, why string
		tone       page.Tone
		run        starter.Summary
	}{
		{"running", "", page.Active, starter.Summary{Open: true, Hosts: []string{"a"}, Priority: 3}},
		{"running", "", page.Active, starter.Summary{Open: true}},
		{"pending", "has no hosts yet", page.Waits, starter.Summary{Open: true, State: starter.StatePending}},
		{"waiting", "begins after a, b", page.Waits, starter.Summary{Open: true, State: starter.StateWaiting, After: []string{"a", "b"}}},
		{"silent", "no output for 1m30s", page.Warning, starter.Summary{Open: true, SilentTasks: []string{"worker-0"}, SilentSeconds: 90}},
		{"succeeded", "", page.Good, starter.Summary{Verdict: spec.VerdictSucceeded, Cause: spec.CauseCompleted}},
		{"failed", "out of memory, exit code 137", page.Bad, starter.Summary{Verdict: spec.VerdictFailed, Cause: spec.CauseOOM, ExitCode: 137}},
		{"failed", "exit code 3", page.Bad, starter.Summary{Verdict: spec.VerdictFailed, ExitCode: 3}},
		{"timed out", "out of time", page.Bad, starter.Summary{Verdict: spec.VerdictTimedOut, Cause: spec.CauseTimeout, ExitCode: 124}},
		{"terminated", "", page.Bad, starter.Summary{Verdict: spec.VerdictFailed, Ending: "terminated"}},
		{"cancelled", "stopped on request", page.Muted, starter.Summary{Verdict: spec.VerdictCancelled, Cause: spec.CauseOperator}},
	} {
		state, tone, why := stateOf(c.run)
		assert.Equal(t, c.state, state)
		assert.Equal(t, c.why, why)
		assert.Equal(t, c.tone, tone, state)
	}
}
