package bench

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// sleepers starts a run of n sleeping tasks and waits until all run.
func (f *fixture) sleepers(n int) client.WorkflowRun {
	pipe := newFIFO(f.b, f.dir)
	run := f.start(&spec.RunSpec{Stop: spec.Stop{Signal: "SIGKILL"}, Env: spec.EnvOf(map[string]string{"FIFO": pipe.path}),
		Tasks: []spec.TaskGroup{{Type: "worker", Count: count(n), Command: []string{"/bin/sh", "-c", `printf x > "$FIFO"; exec sleep 100000`}}}})
	pipe.await(f.b, n)
	return run
}

// BenchmarkAdoption is from the death of the Temporal side to 64 tasks held
// again. Goal: the server's heartbeat timeout (20 s) plus 2 s.
func BenchmarkAdoption(b *testing.B) {
	const tasks = 64
	f := newFixture(b)
	run := f.sleepers(tasks)
	harness.Eventually(b, "all tasks beat", func() bool { return f.held(run, 1) == tasks })
	before := fmt.Sprint(pidsOf(f.worker, "sleep"))
	started := time.Now()
	require.NoError(b, syscall.Kill(f.worker.Side(), syscall.SIGKILL))
	harness.Eventually(b, "all tasks are held again", func() bool { return f.held(run, 2) == tasks })
	took := time.Since(started)
	require.Equal(b, before, fmt.Sprint(pidsOf(f.worker, "sleep")), "a process was touched")
	f.stop(run)
	report(b, []time.Duration{took}, 22*time.Second)
}

// held counts the tasks that beat in that attempt or a later one.
func (f *fixture) held(run client.WorkflowRun, attempt int32) int {
	d, err := f.client.DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID())
	require.NoError(f.b, err)
	n := 0
	for _, a := range d.GetPendingActivities() {
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED && a.GetAttempt() >= attempt && a.GetLastHeartbeatTime() != nil {
			n++
		}
	}
	return n
}

func pidsOf(w *harness.Worker, name string) []int {
	var pids []int
	for _, pid := range harness.Children(w.Cmd.Process.Pid) {
		if strings.HasPrefix(harness.Cmdline(pid), name) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// BenchmarkFootprint measures the cost of 256 sleeping tasks on their host: resident memory of
// host worker and supervisor together, and their CPU time while idle. Goals: 150 KiB per task
// beyond a base of 80 MiB; 3% of a core.
func BenchmarkFootprint(b *testing.B) {
	const tasks = 256
	f := newFixture(b)
	pids := []int{f.worker.Cmd.Process.Pid, f.worker.Side()}
	base := resident(b, pids)
	run := f.sleepers(tasks)
	harness.Eventually(b, "all tasks beat", func() bool { return f.held(run, 1) == tasks })
	idle := 20 * time.Second
	before := cpu(b, pids)
	time.Sleep(idle) // the span that is measured
	used := cpu(b, pids) - before
	full := resident(b, pids)
	f.stop(run)
	b.ReportMetric(float64(base)/(1<<20), "MiB/base")
	b.ReportMetric(float64(full-base)/1024/tasks, "KiB/task")
	b.ReportMetric(100*used.Seconds()/idle.Seconds(), "%core")
	b.ReportMetric(0, "ns/op")
}

func resident(b *testing.B, pids []int) int64 {
	size, err := measure.Resident(pids)
	require.NoError(b, err)
	return size
}

func cpu(b *testing.B, pids []int) (used time.Duration) {
	for _, pid := range pids {
		stat, err := proc.ReadStat(pid)
		require.NoError(b, err)
		used += stat.User + stat.System
	}
	return used
}
