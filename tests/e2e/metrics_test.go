package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// scraped contains a scrape's samples by name and selected labels. Samples with equal names and
// labels are summed.
type scraped map[string]float64

var (
	sample  = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+)$`)
	labelOf = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// scrape requests a host worker's metrics. It returns nil if the worker does not answer yet.
func scrape(t *testing.T, address string, labels ...string) (s scraped, text string) {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, ""
	}
	defer r.Body.Close()
	body := must.Get(io.ReadAll(r.Body))(t)
	require.Equal(t, http.StatusOK, r.StatusCode)
	s = scraped{}
	for _, m := range sample.FindAllStringSubmatch(string(body), -1) {
		has := map[string]string{}
		for _, l := range labelOf.FindAllStringSubmatch(m[2], -1) {
			has[l[1]] = l[2]
		}
		name := m[1]
		for _, l := range labels {
			if has[l] != "" {
				name += " " + has[l]
			}
		}
		v, err := strconv.ParseFloat(m[3], 64)
		require.NoError(t, err, m[0])
		s[name] += v
	}
	return s, string(body)
}

// Runs, processes, barriers and closures are counted from start to finish. Counters start at 0, so
// that the first event is an increase.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	// A run that started before the metrics.
	end := filepath.Join(t.TempDir(), "end")
	open, err := starter.Start(t.Context(), s.Client(), &spec.RunSpec{Dir: t.TempDir(), Tasks: []spec.TaskGroup{
		group("worker", 1, "until [ -e "+end+" ]; do nap; done"),
	}}, starter.Options{ID: "open"})
	require.NoError(t, err)
	harness.Eventually(t, "the server counts it", func() bool {
		r, err := s.Client().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running' AND WorkflowId = 'open'"})
		return err == nil && r.GetCount() == 1
	})
	address := harness.FreeAddress(t)
	f := fixtureOn(t, s, "--metrics", address)
	expects := func(want scraped) {
		t.Helper()
		var wrong []string
		defer func() {
			if t.Failed() {
				t.Log(wrong)
			}
		}()
		harness.Eventually(t, "all is counted", func() bool {
			got, _ := scrape(t, address, "verdict", "cause", "outcome")
			wrong = nil
			for name, v := range want {
				if n, there := got[name]; !there || n != v {
					wrong = append(wrong, fmt.Sprintf("%s is %v (there: %t), and %v is expected", name, n, there, v))
				}
			}
			return len(wrong) == 0
		})
	}
	expects(scraped{
		"clusterrun_runs_open": 1, "clusterrun_runs_ended_total failed origin": 0, "clusterrun_runs_ended_total failed oom": 0, "clusterrun_runs_ended_total succeeded completed": 0,
		"clusterrun_process_exits_total origin": 0, "clusterrun_process_restarts_total": 0, "clusterrun_processes": 1, "clusterrun_process_start_seconds_count": 1,
		"clusterrun_barrier_wait_seconds_count released": 0, "clusterrun_closures_total value": 0, "clusterrun_closures_total error": 0,
	})
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	_, err = open.Wait(bounded(t))
	require.NoError(t, err)

	once := 1
	for _, s := range []struct {
		spec *spec.RunSpec
		want spec.Verdict
	}{
		{&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, harness.Clusterrun(t)+" task barrier")}}, spec.VerdictSucceeded},
		{&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, "exit 3")}}, spec.VerdictFailed},
		{&spec.RunSpec{AutoRestart: true, MaxRestarts: &once, Tasks: []spec.TaskGroup{group("worker", 1, "[ $CLUSTERRUN_RESTART_COUNT = 1 ]")}}, spec.VerdictSucceeded},
	} {
		r := f.result(f.start(s.spec))
		require.Equal(t, s.want, r.Verdict, r.Message)
	}
	serving := f.serve(1)
	c := f.coordinator(serving)
	assert.Equal(t, 49, fetched[int](t, schedule(t, c, "square", 7)))
	require.Error(t, fetchError(t, schedule(t, c, "fail")))
	expects(scraped{
		"clusterrun_runs_ended_total succeeded completed": 3, "clusterrun_runs_ended_total failed origin": 1, "clusterrun_runs_ended_total failed oom": 0,
		"clusterrun_queue_wait_seconds_count": 5, "clusterrun_process_start_seconds_count": 7, "clusterrun_processes": 1,
		"clusterrun_process_exits_total completed": 4, "clusterrun_process_exits_total origin": 2, "clusterrun_process_restarts_total": 1,
		"clusterrun_barrier_wait_seconds_count released": 2, "clusterrun_closures_total value": 1, "clusterrun_closures_total error": 1,
	})
	require.NoError(t, f.client.CancelWorkflow(t.Context(), serving.GetID(), serving.GetRunID()))
	require.Equal(t, spec.VerdictCancelled, f.result(serving).Verdict)
	expects(scraped{"clusterrun_runs_ended_total cancelled operator": 1, "clusterrun_processes": 0})

	_, text := scrape(t, address)
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "clusterrun_runs_ended_total{") {
			assert.NotContains(t, line, "workflow_type", "the same of all of them")
		}
	}
}
