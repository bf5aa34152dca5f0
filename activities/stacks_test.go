package activities

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// listed is a supervisor that can only list processes.
type listed struct {
	supervisor.API
	processes []supervisor.Process
}

func (l *listed) Processes(context.Context, runkey.Run) (supervisor.ProcessesReply, error) {
	return supervisor.ProcessesReply{Processes: l.processes}, nil
}

// control is a host with one execution of a run.
type control struct {
	t    *testing.T
	env  *testsuite.TestActivityEnvironment
	host *Host
	*listed
}

func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{t: t, listed: &listed{}}
	var err error
	c.host = must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: c.listed, Log: zap.NewNop()}))(t)
	var suite testsuite.WorkflowTestSuite
	c.env = suite.NewTestActivityEnvironment()
	c.env.RegisterActivity(c.reserved)
	c.env.RegisterActivityWithOptions(c.host, activity.RegisterOptions{SkipInvalidStructFunctions: true})
	_, err = c.env.ExecuteActivity(c.reserved)
	require.NoError(t, err)
	return c
}

// reserved stores a plan for the environment's run.
func (c *control) reserved(ctx context.Context) error {
	run := runOf(ctx, "")
	_, err := c.host.plans.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: (&spec.RunSpec{}).WithDefaults()}, nil
	})
	return err
}

func (c *control) stacks(tasks ...string) (spec.RequestAnswer, error) {
	v, err := c.env.ExecuteActivity(c.host.CaptureStacks, spec.HostRequest[spec.StacksRequest]{Request: spec.StacksRequest{Tasks: tasks}})
	if err != nil {
		return spec.RequestAnswer{}, err
	}
	var out spec.RequestAnswer
	require.NoError(c.t, v.Get(&out))
	return out, nil
}

// process adds a task's sleeping process.
func (c *control) process(task, logDir string) {
	c.t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	c.processes = append(c.processes, supervisor.Process{
		Key: runkey.Task{Task: task}, PID: cmd.Process.Pid, LogDir: logDir, Started: time.Now().Add(-time.Hour),
	})
}

// writtenAgo makes a log directory with a stdout last written ago before now.
func writtenAgo(t *testing.T, ago time.Duration, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, tasklog.StdoutFile)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	at := time.Now().Add(-ago)
	require.NoError(t, os.Chtimes(path, at, at))
	return dir
}

func TestControlCapturesStacks(t *testing.T) {
	c := newControl(t)
	dirs := map[string]string{
		"worker-0": writtenAgo(t, time.Minute, "x"), "worker-1": writtenAgo(t, 192*time.Second, "x"), "worker-2": writtenAgo(t, 0, ""),
	}
	for _, task := range []string{"worker-0", "worker-1", "worker-2"} {
		c.process(task, dirs[task])
	}
	c.processes = append(c.processes,
		supervisor.Process{Key: runkey.Task{Task: "worker-3"}, PID: os.Getpid(), Exit: &supervisor.Exit{}},
		supervisor.Process{Key: runkey.Task{Task: "worker-4"}, PID: 1 << 22}, // this process does not exist
	)
	out := must.Get(c.stacks())(t)
	assert.Equal(t, []string{"worker-0", "worker-1", "worker-2"}, out.Tasks, "those with a living process")
	require.Len(t, out.Files, 3)
	for task, path := range out.Files {
		assert.Equal(t, dirs[task], filepath.Dir(path))
		text := must.Read(t, path)
		assert.Contains(t, text, "What "+task+" was doing at")
		assert.Contains(t, text, ", host host-a, process 0 of the task with pid ")
		assert.Contains(t, text, ": sleep 1000\n")
	}
	assert.Regexp(t, `\nno output for 1m\d+s\n`, must.Read(t, out.Files["worker-0"]))
	assert.Regexp(t, `\nno output for 3m\d+s\n`, must.Read(t, out.Files["worker-1"]))
	assert.Regexp(t, `\nno output since its start 1h0m\d+s ago\n`, must.Read(t, out.Files["worker-2"]))

	one := must.Get(c.stacks("worker-1", "worker-3"))(t)
	assert.Equal(t, []string{"worker-1"}, one.Tasks)
	assert.NotEqual(t, out.Files["worker-1"], one.Files["worker-1"], "nothing is replaced")

	none := must.Get(c.stacks("worker-3", "worker-4"))(t)
	assert.Empty(t, none.Tasks)
	assert.Empty(t, none.Files)
}

func TestTheSilentAreFirst(t *testing.T) {
	now := time.Now()
	silent := quietFor(supervisor.Process{LogDir: writtenAgo(t, time.Hour, "x")}, now)
	busy := quietFor(supervisor.Process{LogDir: writtenAgo(t, time.Second, "x")}, now)
	unknown := quietFor(supervisor.Process{LogDir: t.TempDir()}, now)
	none := quietFor(supervisor.Process{}, now)
	assert.True(t, silent.since.Before(busy.since))
	assert.True(t, busy.since.Before(unknown.since))
	assert.Equal(t, "its output does not go to a file", unknown.text)
	assert.Equal(t, "its output does not go to a file", none.text)
}

func TestStacksOfARunWithoutLogs(t *testing.T) {
	c := newControl(t)
	c.process("worker-0", "")
	old := filepath.Join(c.host.captures.ownCaptures(), "long", "ago", "stacks.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o755))
	require.NoError(t, os.WriteFile(old, nil, 0o644))
	weeksAgo := time.Now().Add(-3 * keepCaptures)
	require.NoError(t, os.Chtimes(old, weeksAgo, weeksAgo))

	out := must.Get(c.stacks())(t)
	path := out.Files["worker-0"]
	assert.True(t, strings.HasPrefix(path, c.host.captures.ownCaptures()+"/"), path)
	assert.True(t, strings.HasPrefix(filepath.Base(path), "worker-0-stacks-"), path)
	assert.Contains(t, must.Read(t, path), "its output does not go to a file")
	assert.NoDirExists(t, filepath.Join(c.host.captures.ownCaptures(), "long"))
	again := must.Get(c.stacks())(t)
	assert.FileExists(t, path)
	assert.FileExists(t, again.Files["worker-0"])

	// The state directory of `clusterrun run` is removed with the run.
	c.host.LogRoot = t.TempDir()
	out = must.Get(c.stacks())(t)
	assert.True(t, strings.HasPrefix(out.Files["worker-0"], c.host.LogRoot+"/"), out.Files["worker-0"])
	assert.True(t, strings.HasSuffix(filepath.Dir(out.Files["worker-0"]), "/attempt_0/0"), out.Files["worker-0"])
}

// A directory among the logs may belong to another user who has put a link in it.
func TestStacksLeaveTheLogsOfOthersAlone(t *testing.T) {
	c := newControl(t)
	c.host.LogRoot = t.TempDir()
	c.process("worker-0", "")
	out := must.Get(c.stacks())(t)
	attempt := filepath.Dir(filepath.Dir(out.Files["worker-0"]))
	require.True(t, strings.HasPrefix(attempt, c.host.LogRoot+"/"), attempt)
	elsewhere := t.TempDir()
	require.NoError(t, os.RemoveAll(attempt))
	require.NoError(t, os.Symlink(elsewhere, attempt))
	_, err := c.stacks()
	require.ErrorContains(t, err, "stacks of worker-0 on host host-a: ")
	left := must.Get(os.ReadDir(elsewhere))(t)
	assert.Empty(t, left)

	for _, p := range c.host.plans.all() {
		_, err := c.host.plans.change(p.Run, func(p *plan) error {
			p.User = &hostuser.User{Name: "alice", UID: 54321}
			return nil
		})
		require.NoError(t, err)
	}
	out = must.Get(c.stacks())(t)
	assert.True(t, strings.HasPrefix(out.Files["worker-0"], c.host.captures.ownCaptures()+"/"), out.Files["worker-0"])
	info := must.Get(os.Stat(c.host.captures.ownCaptures()))(t)
	assert.Zero(t, info.Mode().Perm()&0o077)
}

// If nothing can be captured, the error is reported immediately, because the end of a run may wait
// for it.
func TestStacksThatCannotBeWritten(t *testing.T) {
	c := newControl(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	c.process("worker-0", filepath.Join(file, "below"))
	_, err := c.stacks()
	require.ErrorContains(t, err, "stacks of worker-0 on host host-a: ")
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	assert.True(t, app.NonRetryable())
	assert.Equal(t, stacksError, app.Type())

	c.process("worker-1", t.TempDir())
	out, err := c.stacks()
	require.NoError(t, err, "some are better than none")
	assert.Equal(t, []string{"worker-1"}, out.Tasks)
}
