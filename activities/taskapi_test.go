package activities

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

func TestShortText(t *testing.T) {
	assert.Equal(t, "loss 0.3", shortText("loss 0.3"))
	assert.Equal(t, "a b", shortText("a\nb"))
	assert.Equal(t, strings.Repeat("ü", 50), shortText(strings.Repeat("ü", 1000)))
	assert.Equal(t, "a\ufffdb", shortText("a\xffb"))
	assert.Equal(t, "red ab", shortText("\x1b[31mred\x1b[0m a\x1b]0;title\x07b"))
	assert.Equal(t, "a b c", shortText("a\u202eb\u2028c"))
	assert.Equal(t, "last", shortText("first\rlast"))
	assert.Equal(t, "31m", shortText("\u009b31m"))
	assert.NotContains(t, shortText(strings.Repeat("\x1b", 300)+"\x00[31m"), "\x1b")
	for _, s := range []string{strings.Repeat("<", 1000), strings.Repeat("\x00\"\\", 1000), strings.Repeat("\U0001F600", 1000)} {
		b := must.Get(json.Marshal(shortText(s)))(t)
		assert.LessOrEqual(t, len(b), maxProgress+2)
		assert.Greater(t, len(b), maxProgress-20)
	}
}

// A heartbeat's details stay under 850 bytes, with any message of a task.
func TestHeartbeatIsSmall(t *testing.T) {
	b, err := json.Marshal(spec.Heartbeat{
		PID: 1 << 22, Host: strings.Repeat("h", 64), Restarts: 1000, Started: time.Now(), LogDir: strings.Repeat("d", 120),
		Progress: &spec.Progress{Current: 0.1234567890123456, Total: 1.234567890123456e300, Message: shortText(strings.Repeat("<", 1000))},
		Steps:    &spec.StepTime{Seconds: 33554431.123456, Steps: math.MaxInt32, Barriers: true},
		Usage: &spec.LiveUsage{
			Usage: usageOf(supervisor.Usage{User: 999999999999999999, System: 999999999999999999, MaxRSS: 1 << 44, GPUTime: 999999999999999999, MaxGPUMemory: 1 << 44}),
			CPUs:  thousandths(1234.56789), GPUs: thousandths(7.987654321), RSSBytes: 1 << 44, GPUMemoryBytes: 1 << 44, Processes: 1 << 22,
		},
	})
	require.NoError(t, err)
	assert.Less(t, len(b), 850)
}

// served returns a host with a plan of two workers and the given processes.
func served(t *testing.T, state string, processes ...supervisor.Process) *Host {
	t.Helper()
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: state, Supervisor: &listed{processes: processes}, Log: zap.NewNop()}))(t)
	t.Cleanup(h.Close)
	return h
}

var servedRun = runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}

func workerKey(i string) runkey.Task { return runkey.Task{Run: servedRun, Task: "worker-" + i} }

// The next host worker serves the previous host worker's tasks at the same sockets, and knows which
// of them have ended permanently.
func TestServeTasksAgain(t *testing.T) {
	state := t.TempDir()
	two := 2
	s := (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: &two, Command: []string{"true"}}}}).WithDefaults()
	first := served(t, state)
	p, err := first.plans.update(servedRun, func(*plan) (*plan, error) {
		return &plan{Run: servedRun, Spec: s, Tasks: []string{"worker-0", "worker-1"}, Cluster: hostapi.Cluster{Hosts: 1, Members: []hostapi.Member{
			{Type: "worker", Host: "host-a", Address: "127.0.0.1:1"}, {Type: "worker", Index: 1, Rank: 1, Host: "host-a", Address: "127.0.0.1:2"},
		}}}, nil
	})
	require.NoError(t, err)
	assert.False(t, p.view("worker-0").Local)
	p.Spec.Barriers = spec.BarriersLocal
	assert.True(t, p.view("worker-0").Local)
	path := must.Get(first.listen(p, workerKey("0"), 0, t.TempDir()))(t)
	first.Close()

	logs := t.TempDir()
	living := supervisor.Process{Key: workerKey("0"), Number: 2, PID: os.Getpid(), LogDir: logs}
	ended := supervisor.Process{Key: workerKey("1"), Exit: &supervisor.Exit{Code: 3}}
	second := served(t, state, living, ended)
	require.NoError(t, second.ServeTasks(context.Background()))
	t.Setenv(taskapi.SocketVar, path)
	c := must.Get(task.Current())(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	info := must.Get(c.Info(ctx))(t)
	assert.Equal(t, 2, info.RestartCount)
	require.NoError(t, c.Result(ctx, 1))
	assert.FileExists(t, logs+"/result.json")
	_, err = c.Barrier(ctx, "x")
	require.ErrorContains(t, err, "worker-1 exited with exit code 3 and does not come back")

	second.Close()
	ended.Granted = true
	third := served(t, state, living, ended)
	require.NoError(t, third.ServeTasks(context.Background()))
	_, err = c.Barrier(ctx, "x", task.Timeout(50*time.Millisecond))
	require.ErrorContains(t, err, "worker-1 did not arrive within", "it is about to be started again")

	third.services.Release(t.Context(), servedRun)
	assert.NoFileExists(t, path)
}

func TestComesBack(t *testing.T) {
	exit := func(code int, reason supervisor.Reason) []supervisor.Process {
		return []supervisor.Process{{Exit: &supervisor.Exit{Code: code, Reason: reason}}}
	}
	once, never := &plan{Spec: &spec.RunSpec{AutoRestart: true}}, &plan{Spec: &spec.RunSpec{}}
	assert.True(t, once.comesBack(exit(1, supervisor.ReasonNone), false))
	assert.False(t, once.comesBack(exit(0, supervisor.ReasonNone), false))
	assert.False(t, once.comesBack(exit(1, supervisor.ReasonCollateral), false))
	assert.False(t, never.comesBack(exit(1, supervisor.ReasonNone), false))
	sealed := &plan{Spec: once.Spec, Sealed: true}
	assert.False(t, sealed.comesBack(exit(1, supervisor.ReasonNone), false))
}

// A process's command has the bounds of the spec.
func TestCommandHasTheBoundsOfTheSpec(t *testing.T) {
	h := served(t, t.TempDir())
	s := (&spec.RunSpec{
		Command: []string{"true"}, Tasks: []spec.TaskGroup{{Type: "worker"}}, Logs: spec.Logs{Quota: "1MiB", OnFull: spec.OnFullDrop},
		Limits: spec.Limits{Memory: "64MiB"}, OnOOM: spec.OnOOMFail,
	}).WithDefaults()
	p := must.Get(h.plans.update(servedRun, func(*plan) (*plan, error) {
		return &plan{Run: servedRun, Spec: s, Tasks: []string{"worker-0"}, Cluster: hostapi.Cluster{
			Hosts: 1, Members: []hostapi.Member{{Type: "worker", Host: "host-a", Address: "127.0.0.1:1"}},
		}}, nil
	}))(t)
	c := must.Get((&taskLease{Host: h, plan: p, key: workerKey("0")}).command(0))(t)
	assert.EqualValues(t, 1<<20, c.LogQuota)
	assert.True(t, c.LogDrop)
	assert.True(t, c.OOMFails)
	assert.EqualValues(t, 64<<20, c.Limits.Memory)
	assert.Equal(t, supervisor.Stop{Signal: 15, Grace: 30 * time.Second}, c.Stop)
}
