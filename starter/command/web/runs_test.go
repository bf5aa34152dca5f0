package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestListQueries(t *testing.T) {
	v := must.Get(url.ParseQuery("state=failed&user=ada%40node&name=ir%5Bis&since=1d&before=2026-03-14T12:00:00.5Z"))(t)
	q := must.Get(parseListQuery(v))(t)
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

// A filter that only a row's link sets can be withdrawn.
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
		{"pending", "has no hosts yet", page.Waits, starter.Summary{Open: true, State: outcome.StatePending}},
		{"waiting", "waiting for run a to end", page.Waits, starter.Summary{Open: true, State: outcome.StateWaiting, Facts: []outcome.Fact{{Kind: outcome.FactWaiting, Severity: outcome.Waits, Text: "waiting for run a to end"}}}},
		{"silent", "1 task is silent: worker-0", page.Warning, starter.Summary{Open: true, Facts: []outcome.Fact{{Kind: outcome.FactSilent, Severity: outcome.Warning, Text: "1 task is silent", Items: []string{"worker-0"}}}}},
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

// slowServer never answers.
type slowServer struct{ client.Client }

func (slowServer) DescribeWorkflowExecution(ctx context.Context, _, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A run's page does not wait for a slow server. It reports a server that has not answered in
// time.
func TestAPageOfASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Options: Options{App: &cli.App{}, Client: slowServer{}}}
		get := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/iris", nil))
			return w
		}
		began := time.Now()
		w := get()
		assert.Equal(t, patience, time.Since(began))
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Contains(t, w.Body.String(), "is taking longer than usual")
		assert.Contains(t, w.Body.String(), `data-refresh="500"`)
		time.Sleep(askedFor)
		w = get()
		assert.Equal(t, http.StatusBadGateway, w.Code)
		assert.Contains(t, w.Body.String(), "The server did not answer within 15s. This page will try again.")
		assert.Equal(t, "5", w.Header().Get("Refresh"))
	})
}

// Only those who know a note's key can see it, until no page has shown it for a while.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes facts[outcome.Fact]
		notes.put("first", outcome.Fact{Text: "first"})
		time.Sleep(keep)
		assert.Equal(t, "first", notes.last("first").Text)
		time.Sleep(keep)
		notes.put("second", outcome.Fact{Text: "second"})
		assert.Len(t, notes.known, 2)
		time.Sleep(2 * keep)
		notes.put("third", outcome.Fact{Text: "third"})
		assert.Len(t, notes.known, 1)
		assert.Empty(t, notes.last("first").Text)
		assert.Empty(t, notes.last("").Text)
	})
}

func statusOf(names ...string) *starter.Status {
	s := &starter.Status{RunID: "iris"}
	for rank, name := range names {
		kind, index, err := spec.ParseTaskName(name)
		if err != nil {
			panic(err)
		}
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: kind, Index: index, Rank: rank}})
	}
	return s
}

func TestChosenTasks(t *testing.T) {
	s := statusOf("chief-0", "worker-0", "worker-1", "worker-2")
	for ranks, want := range map[string][]string{
		"":                 nil,
		"0":                {"chief-0"},
		"1-2":              {"worker-0", "worker-1"},
		" 3 , 0 ":          {"chief-0", "worker-2"},
		"2-99":             {"worker-1", "worker-2"},
		"worker":           {"worker-0", "worker-1", "worker-2"},
		"chief-0,worker-1": {"chief-0", "worker-1"},
	} {
		names, err := outputQuery{page.OutputFilter{Ranks: ranks}}.names(s)
		require.NoError(t, err, ranks)
		assert.Equal(t, want, names, ranks)
	}
	for _, ranks := range []string{"4", "7-9", "ps", "3-1", "<b>", "1-"} {
		_, err := outputQuery{page.OutputFilter{Ranks: ranks}}.names(s)
		assert.Error(t, err, ranks)
	}
}

func TestFileName(t *testing.T) {
	assert.Equal(t, "a_b_c-worker-0", fileName("a/b\"c-worker-0"))
	assert.Equal(t, "___", fileName("\r\n\x00"))
}

// Several pages share one question.
func TestFactsAreShared(t *testing.T) {
	var f facts[int]
	var asked atomic.Int32
	ask := func(context.Context) (int, error) { return int(asked.Add(1)), nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			value, _, err := f.get(t.Context(), "run", time.Minute, ask)
			assert.NoError(t, err)
			assert.Equal(t, 1, value)
		})
	}
	all.Wait()
	other, _, err := f.get(t.Context(), "other", time.Minute, ask)
	require.NoError(t, err)
	assert.Equal(t, 2, other)
	f.forget("run")
	again, _, err := f.get(t.Context(), "run", time.Minute, ask)
	require.NoError(t, err)
	assert.Equal(t, 3, again)
}

// A page does not wait for a slow answer; the next page shows it. A page waits even less for a
// newer version of an answer that it has.
func TestASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f facts[int]
		asked, began := 0, time.Now()
		ask := func(ctx context.Context) (int, error) {
			asked++
			select {
			case <-time.After(5 * time.Second):
				return asked, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		_, _, err := f.get(first, "run", time.Second, ask)
		require.ErrorIs(t, err, errPending)
		assert.Equal(t, time.Second, time.Since(began))
		leave() // the question continues
		value, at, err := f.get(t.Context(), "run", time.Minute, ask)
		require.NoError(t, err)
		assert.Equal(t, 1, value)
		assert.Equal(t, 5*time.Second, at.Sub(began))

		time.Sleep(most)
		again := time.Now()
		value, at, err = f.get(t.Context(), "run", time.Minute, ask)
		require.NoError(t, err)
		assert.Equal(t, 1, value, "the earlier answer")
		assert.Equal(t, 5*time.Second, at.Sub(began))
		assert.Equal(t, patience, time.Since(again))
		synctest.Wait()
		time.Sleep(5 * time.Second)
		value, _, err = f.get(t.Context(), "run", 0, ask)
		require.NoError(t, err)
		assert.Equal(t, 2, value)
		assert.Equal(t, 2, asked)
	})
}

// A browser that leaves does not spoil the facts for other browsers.
func TestABrowserThatLeaves(t *testing.T) {
	var f facts[int]
	gone, leave := context.WithCancel(t.Context())
	let := make(chan struct{})
	_, _, err := f.get(gone, "run", time.Minute, func(ctx context.Context) (int, error) {
		leave()
		<-let
		return 7, ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	close(let)
	value, _, err := f.get(t.Context(), "run", time.Minute, nil)
	require.NoError(t, err)
	assert.Equal(t, 7, value)
}

// Errors are also cached, so that not every page asks a server that does not answer.
func TestErrorsAreShared(t *testing.T) {
	var f facts[int]
	asked := 0
	for range 3 {
		_, _, err := f.get(t.Context(), "run", time.Minute, func(context.Context) (int, error) { asked++; return 0, errors.New("no") })
		require.EqualError(t, err, "no")
	}
	assert.Equal(t, 1, asked)
}

// A slow answer lengthens the pause before the next question.
func TestPause(t *testing.T) {
	assert.Equal(t, least, pause(time.Millisecond))
	assert.Equal(t, 5*time.Second, pause(200*time.Millisecond))
	assert.Equal(t, most, pause(10*time.Second))
}
