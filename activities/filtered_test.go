package activities

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// filtering is a host with a run of two tasks whose lines are filtered.
func filtering(t *testing.T, change func(*plan)) (h *Host, p *plan, runDir string) {
	t.Helper()
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Log: zap.NewNop()})
	require.NoError(t, err)
	p = planOf("chief", "worker")
	p.Run = runkey.Run{WorkflowID: "iris", RunID: "1"}
	p.Tasks, p.LogRoot, p.Cluster.Hosts = []string{"chief-0", "worker-0"}, t.TempDir(), 1
	p.Spec.Logs.DuplicateStdoutFilters = []string{"loss"}
	if change != nil {
		change(p)
	}
	p, err = h.plans.update(p.Run, func(*plan) (*plan, error) { return p, nil })
	require.NoError(t, err)
	return h, p, tasklog.RunDir(p.LogRoot, "iris", "1")
}

func write(t *testing.T, runDir string, attempt, rank int, text string) {
	t.Helper()
	dir := tasklog.ProcessDir(runDir, attempt, rank)
	require.NoError(t, tasklog.MakeDir(dir))
	f, err := os.OpenFile(filepath.Join(dir, tasklog.StdoutFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func filtered(t *testing.T, runDir string, attempt string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(runDir, "attempt_"+attempt, "filtered_stdout.log"))
	require.NoError(t, err)
	return string(b)
}

// TE-26, TE-29: all tasks of the host share one file, with their prefixes, which is complete
// when the run is released.
func TestFilteredLines_TE26_TE29(t *testing.T) {
	h, p, dir := filtering(t, nil)
	h.collectors.collect(p)
	h.collectors.collect(p)
	write(t, dir, 0, 0, "loss 1\nnoise\n")
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "attempt_0", "filtered_stdout.log"))
		return string(b) == "[chief-0]:     loss 1\n"
	}, 10*time.Second, time.Millisecond, "while the run lives")
	write(t, dir, 0, 1, "loss 2\n")
	write(t, dir, 1, 1, "loss 3")
	h.collectors.collectRest(t.Context(), p)
	assert.Equal(t, "[worker-0]:    loss 3", filtered(t, dir, "1"))
	assert.Equal(t, "[chief-0]:     loss 1\n[worker-0]:    loss 2\n", filtered(t, dir, "0"))
	assert.Empty(t, h.collectors.byRun)
}

// The host worker died, and the next one only releases the run. It still collects all lines,
// and a late task of the released run does no harm.
func TestFilteredLinesOfAnotherHostWorker(t *testing.T) {
	h, p, dir := filtering(t, func(p *plan) { p.Spec.Logs.Prefix = new("{{.Type}}/{{.Rank}}@{{.Host}}#{{.Attempt}} ") })
	write(t, dir, 0, 0, "loss 1\n")
	h.collectors.collect(p)
	next, err := NewHost(h.Config)
	require.NoError(t, err)
	write(t, dir, 0, 0, "loss 2\n")
	require.NoError(t, h.collectors.endCollecting(t.Context(), p.Run)) // as its death would
	next.collectors.collectRest(t.Context(), p)
	assert.Equal(t, "chief/0@#0 loss 1\nchief/0@#0 loss 2\n", filtered(t, dir, "0"))

	p.Released = true
	next.collectors.collectRest(t.Context(), p)
	next.collectors.collect(p)
	assert.Empty(t, next.collectors.byRun)
}

func TestNothingIsFiltered(t *testing.T) {
	for name, change := range map[string]func(*plan){
		"no filters":         func(p *plan) { p.Spec.Logs.DuplicateStdoutFilters = nil },
		"no logs (SEED-76)":  func(p *plan) { p.LogRoot = spec.NullDir },
		"a plan of old days": func(p *plan) { p.Spec = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h, p, _ := filtering(t, change)
			h.collectors.collect(p)
			assert.Empty(t, h.collectors.byRun)
			h.collectors.collectRest(t.Context(), p)
		})
	}
}

// Hosts that may share a log directory each write their own file, for their own tasks.
func TestFilteredLinesOfHostsWithOneDirectory(t *testing.T) {
	h, p, dir := filtering(t, func(p *plan) {
		p.Cluster.Hosts, p.Spec.Logs.Dir, p.Tasks = 2, p.LogRoot, []string{"worker-0"}
	})
	write(t, dir, 0, 0, "loss of another host\n")
	write(t, dir, 0, 1, "loss\n")
	h.collectors.collectRest(t.Context(), p)
	b, err := os.ReadFile(filepath.Join(dir, "attempt_0", "filtered_stdout.host-a.log"))
	require.NoError(t, err)
	assert.Equal(t, "[worker-0]:    loss\n", string(b))
}
