package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// used returns metrics that all have values.
func used() *Metrics {
	m := New()
	m.LeaseAge(time.Now)
	m.SlowestTask(func() float64 { return 1 })
	m.FailedChecks(func() int { return 1 })
	m.Exits.WithLabelValues("completed").Inc()
	m.Closures.WithLabelValues("value").Inc()
	m.BarrierWaits.WithLabelValues("released").Observe(1)
	m.BeginRuns("default", "q")
	m.RunsOpen("default", "q").Set(1)
	sdk := m.SDK()
	sdk.With(map[string]string{"verdict": "failed", "cause": "oom"}).Counter("clusterrun_runs_ended").Inc()
	sdk.With(map[string]string{"task_queue": "q"}).Timer("clusterrun_queue_wait")(time.Second)
	sdk.With(map[string]string{"operation": "PollActivityTaskQueue"}).Counter("temporal_request_failure").Inc()
	return m
}

// scrape returns the metrics that are served now.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	l := must.Get(Listen("metrics", "127.0.0.1:0"))(t)
	defer l.Close()
	go m.Serve(l)
	r := must.Get(http.Get("http://" + l.Addr().String() + "/metrics"))(t)
	defer r.Body.Close()
	body := must.Get(io.ReadAll(r.Body))(t)
	require.Equal(t, http.StatusOK, r.StatusCode)
	return string(body)
}

// Names of runs and tasks do not appear in metrics and do not add series.
func TestNoNamesOfRuns(t *testing.T) {
	m := used()
	before := strings.Count(scrape(t, m), "\n")
	for i := range 200 {
		sdk := m.SDK().With(map[string]string{"verdict": "failed", "cause": "oom", "operation": "PollActivityTaskQueue", "task_queue": spec.InstanceQueue("q", "host-a", fmt.Sprint("secret-", i)),
			"workflow_id": fmt.Sprint("secret-", i), "run_id": fmt.Sprint("secret-", i), "nexus_operation": "secret"})
		sdk.Counter("clusterrun_runs_ended").Inc()
	}
	// There is one new series, with all the labels above.
	after := scrape(t, m)
	assert.NotContains(t, after, "secret")
	assert.Equal(t, before+1, strings.Count(after, "\n"))
}

var metricName = regexp.MustCompile(`\b(clusterrun|temporal)_[a-z_]+\b`)

// All metrics in the alerts and the dashboard exist, and the dashboard shows every metric of this
// program.
func TestMonitoringNamesMetrics(t *testing.T) {
	there := map[string]bool{}
	for _, line := range strings.Split(scrape(t, used()), "\n") {
		if name := metricName.FindString(line); name != "" && !strings.HasPrefix(line, "#") {
			there[name] = true
		}
	}
	require.NotEmpty(t, there)
	dir := filepath.Join("..", "..", "..", "deployments", "monitoring")
	alerts := must.Get(os.ReadFile(filepath.Join(dir, "alerts.yml")))(t)
	dashboard := must.Get(os.ReadFile(filepath.Join(dir, "dashboard.json")))(t)
	require.True(t, json.Valid(dashboard))
	asked := metricName.FindAllString(string(alerts)+string(dashboard), -1)
	require.Greater(t, len(asked), 10)
	for _, name := range asked {
		assert.True(t, there[name], "%s is no metric", name)
	}
	for name := range there {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "clusterrun_") {
			assert.Contains(t, string(dashboard), base)
		}
	}
}

func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool of Debian's package prometheus is not installed")
	}
	out, err := exec.Command(promtool, "check", "rules", filepath.Join("..", "..", "..", "deployments", "monitoring", "alerts.yml")).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(promtool, "test", "rules", filepath.Join("testdata", "alerts_test.yml")).CombinedOutput()
	require.NoError(t, err, string(out))
	check := exec.Command(promtool, "check", "metrics")
	var ours strings.Builder
	for _, line := range strings.SplitAfter(scrape(t, used()), "\n") {
		if strings.Contains(line, "clusterrun_") {
			ours.WriteString(line)
		}
	}
	check.Stdin = strings.NewReader(ours.String())
	out, err = check.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"9464": "127.0.0.1:9464", ":9464": ":9464", "10.1.2.3:1": "10.1.2.3:1", "[::1]:65535": "[::1]:65535", "0.0.0.0:9464": "0.0.0.0:9464",
	} {
		got, err := Address("metrics", given)
		require.NoError(t, err, given)
		assert.Equal(t, want, got)
	}
	for _, given := range []string{":", "nonsense", "host:", "host:http", ":0", ":65536", "-1", "a:b:c", "http://host:9464", "::1", " 9464"} {
		_, err := Address("metrics", given)
		require.Error(t, err, given)
		assert.Contains(t, err.Error(), "--metrics")
		assert.Contains(t, err.Error(), "use HOST:PORT")
	}
}

func TestTaken(t *testing.T) {
	l := must.Get(Listen("metrics", "127.0.0.1:0"))(t)
	defer l.Close()
	_, err := Listen("metrics", l.Addr().String())
	assert.ErrorContains(t, err, "another program already listens there; use another port")
}

// Many concurrent requests are served in turn or told to come later. Only GET /metrics is answered.
func TestCrowd(t *testing.T) {
	l := must.Get(Listen("metrics", "127.0.0.1:0"))(t)
	defer l.Close()
	go used().Serve(l)
	url := "http://" + l.Addr().String()
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			r, err := c.Get(url + "/metrics")
			if !assert.NoError(t, err) {
				return
			}
			defer r.Body.Close()
			assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, r.StatusCode)
		})
	}
	all.Wait()
	r := must.Get(http.Get(url + "/debug/pprof/"))(t)
	r.Body.Close()
	assert.Equal(t, http.StatusNotFound, r.StatusCode)
}

// The first failed run is visible as an increase: it adds to a series that already exists as 0,
// with the labels that the SDK sets.
func TestRunsAreCountedFromZero(t *testing.T) {
	m := New()
	m.BeginRuns("default", "clusterrun")
	before := scrape(t, m)
	of := func(verdict spec.Verdict, cause spec.Cause, n int) string {
		return fmt.Sprintf("\nclusterrun_runs_ended_total{cause=%q,namespace=\"default\",task_queue=\"clusterrun\",verdict=%q} %d\n", cause, verdict, n)
	}
	for _, e := range spec.Endings() {
		assert.Contains(t, before, of(e.Verdict, e.Cause, 0))
		m.SDK().With(map[string]string{"namespace": "default", "task_queue": "clusterrun", "workflow_type": "ClusterRun", "worker_type": "none", "activity_type": "none"}).
			With(map[string]string{"verdict": string(e.Verdict), "cause": string(e.Cause)}).Counter(spec.MetricRunsEnded).Inc()
	}
	after := scrape(t, m)
	for _, e := range spec.Endings() {
		assert.Contains(t, after, of(e.Verdict, e.Cause, 1))
	}
	assert.Equal(t, strings.Count(before, "clusterrun_runs_ended_total{"), strings.Count(after, "clusterrun_runs_ended_total{"), "no other series")
}
