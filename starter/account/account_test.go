package account

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func at(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0).UTC() }

func scheduled(seconds int, activity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventTime: timestamppb.New(at(seconds)), Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: activity}},
	}}
}

// sample is a run of two tasks, of which the second failed.
func sample(t *testing.T, id, level string) (*Account, []*historypb.History) {
	t.Helper()
	exits := []spec.Exit{
		{Cause: spec.CauseCollateral, Signal: "SIGTERM", ExitCode: -15, Started: at(6), Ended: at(31)},
		{Cause: spec.CauseOrigin, ExitCode: 3, Started: at(7), Ended: at(30), Message: "boom in " + id},
	}
	s := &starter.Status{RunID: id, ExecutionID: "0-1-" + id, Started: at(0), Ended: at(33), State: spec.RunEnded, Verdict: spec.VerdictFailed,
		Result: &spec.RunResult{Verdict: spec.VerdictFailed, ExitCode: 3, FirstFailure: &spec.ProcessFailure{Task: "worker-1", Cause: spec.CauseOrigin, Timestamp: at(30)}}}
	root := t.TempDir()
	for i, name := range []string{"worker-0", "worker-1"} {
		exits[i].LogDir = tasklog.ProcessDir(tasklog.RunDir(root, id, s.ExecutionID), 0, i)
		require.NoError(t, os.MkdirAll(exits[i].LogDir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(exits[i].LogDir, tasklog.StdoutFile), []byte("line\n"), 0o600))
		start := tasklog.Start{Version: "1", Dir: "/"}
		start.Variables([]string{"LEVEL=" + level, "RUN_TOKEN=x", "CLUSTERRUN_RUN_ID=" + id, "OUT=/out/" + id, "SHELL_LEVEL=" + level}, []string{"SHELL_LEVEL=" + level}, tasklog.ValueKey("key"), func(string, string) bool { return false })
		require.NoError(t, start.Write(exits[i].LogDir))
		s.Tasks = append(s.Tasks, starter.TaskStatus{
			TaskStatus: spec.TaskStatus{Name: name, Type: "worker", Index: i, Rank: i, Host: "a", Exit: &exits[i]}, LogDir: exits[i].LogDir,
		})
		s.Result.Tasks = append(s.Result.Tasks, spec.TaskResult{Name: name, Exit: &exits[i]})
	}
	histories := []*historypb.History{{Events: []*historypb.HistoryEvent{
		scheduled(2, spec.ActivityReserve), scheduled(5, spec.ActivityRunTask), scheduled(6, spec.ActivityReserve),
	}}}
	given := &spec.RunSpec{
		Name: "iris", Command: []string{"true"}, Env: spec.Env{"A_TOKEN": {Value: "hush-" + level}, "LEVEL": {Value: level}},
		Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}, Signature: &spec.Signature{SSH: "x"}, Ship: spec.Ship{From: &spec.HostService{Token: "key"}},
	}
	return New(s, given, histories), histories
}

func TestPhases(t *testing.T) {
	a, _ := sample(t, "run-aaaa", "1")
	assert.Equal(t, []Phase{{"queued", 2}, {"placing", 3}, {"launch", 2}, {"running", 23}, {"ending", 3}}, a.Phases)
	assert.Empty(t, phases(&starter.Status{Open: true, Started: at(0)}, nil), "it is not placed yet")
	local := &historypb.History{Events: []*historypb.HistoryEvent{
		{EventTime: timestamppb.New(at(0)), Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{TaskQueue: &taskqueuepb.TaskQueue{Name: spec.LocalQueue("x")}},
		}},
		{EventTime: timestamppb.New(at(1)), Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{},
		}},
		scheduled(3, spec.ActivityRunTask),
	}}
	assert.Equal(t, []Phase{{"queued", 1}, {"placing", 2}}, phases(&starter.Status{Open: true, Started: at(0)}, []*historypb.History{local}))
	assert.Nil(t, a.Spec.Signature)
	assert.Nil(t, a.Spec.Ship.From, "a key to the files of the run")
}

func TestCompare(t *testing.T) {
	a, _ := sample(t, "run-aaaa", "1")
	b, _ := sample(t, "run-bbbb", "2")
	both := []string{"worker-0", "worker-1"}
	c := Compare(a, b)
	assert.Equal(t, []Difference{
		{In: "spec", What: "env.LEVEL", A: new("1"), B: new("2")},
		{In: "environment", What: "LEVEL", Tasks: both, A: new("1"), B: new("2")},
		{In: "environment", What: "SHELL_LEVEL", Tasks: both, A: new("one value (inherited)"), B: new("another value (inherited)")},
	}, c.Differences, "what the ID makes another, and secrets, are none")
	assert.Empty(t, c.Unknown)
	assert.Empty(t, Compare(a, a).Differences)

	for i := range b.Tasks {
		b.Tasks[i].Start.Key = "other"
	}
	c = Compare(a, b)
	assert.Len(t, c.Differences, 2, "digests of different keys say nothing")
	require.Len(t, c.Unknown, 1)
	assert.Contains(t, c.Unknown[0], "only the names are compared")

	b, _ = sample(t, "run-bbbb", "1")
	b.Status.Tasks[1].Host, b.Status.Tasks[0].Restarts = "b", 2
	b.Status.Tasks[1].Exit.Cause = spec.CauseOOM
	b.Tasks[0].LastLines, b.Tasks[1].Start = "other", nil
	b.Status.Result.ExitCode = 4
	b.Status.Result.Tasks[0].Value = []byte(`{"loss":1}`)
	b.Phases = b.Phases[:1]
	c = Compare(a, b)
	assert.Equal(t, []Difference{
		{In: "placement", What: "host", Tasks: both[1:], A: new("a"), B: new("b")},
		{In: "causes", What: "cause", Tasks: both[1:], A: new("origin"), B: new("oom")},
		{In: "restarts", What: "restarts", Tasks: both[:1], A: new("0"), B: new("2")},
		{In: "last lines", What: "stdout", Tasks: both[:1], A: new("line"), B: new("other")},
		{In: "result", What: "exit code", A: new("3"), B: new("4")},
		{In: "result", What: "value of worker-0", B: new(`{"loss":1}`)},
	}, c.Differences)
	require.Len(t, c.Unknown, 1)
	assert.Contains(t, c.Unknown[0], "how processes of run-bbbb were started cannot be read here")
	assert.Len(t, c.Durations, 5)
	assert.Nil(t, c.Durations[4].B)

	a.Spec.Command, b.Spec.Command = []string{"sh", "-c", "x > y"}, []string{"sh", "-c", "x >> y"}
	assert.Contains(t, Compare(a, b).Differences,
		Difference{In: "spec", What: "command", A: new(`["sh","-c","x > y"]`), B: new(`["sh","-c","x >> y"]`)}, "as it was written")

	b.Spec = nil
	assert.Contains(t, Compare(a, b).Unknown[0], "the spec of run-bbbb cannot be read")
}

func TestExportAndImport(t *testing.T) {
	a, histories := sample(t, "run-aaaa", "1")
	a.Status.Result.Message = "red \x1b[31m"
	a.Phases[0].Name = "queued\n\x1b[31m"
	runDir, _, _, _ := tasklog.SplitProcessDir(a.Status.Tasks[0].LogDir)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(a.Status.Tasks[0].LogDir, tasklog.StderrFile)))
	require.NoError(t, os.WriteFile(filepath.Join(a.Status.Tasks[1].LogDir, tasklog.ResultFile), []byte("1"), 0o600))
	for i := range a.Status.Tasks { // the same exits are in the result
		a.Status.Tasks[i].Exit.ValueFile = "/etc/passwd"
		a.Status.Result.Tasks[i].StacksFile = "/etc/passwd"
	}
	var file bytes.Buffer
	require.NoError(t, Pack(&file, a, histories, []string{runDir, runDir}))

	state := filepath.Join(t.TempDir(), "im*[ported")
	for range 2 { // the second replaces the first
		m, err := Import(t.Context(), bytes.NewReader(file.Bytes()), state, 1<<20)
		require.NoError(t, err)
		assert.Equal(t, "run-aaaa", m.RunID)
	}
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left behind")
	require.NoError(t, os.RemoveAll(runDir))

	for _, beginning := range []string{"run-aaaa", "run"} {
		found, err := Find(state, beginning, "")
		require.NoError(t, err)
		require.Len(t, found, 1, beginning)
		got, err := found[0].Account()
		require.NoError(t, err)
		assert.Equal(t, a.Spec, got.Spec)
		assert.Equal(t, `queued \x1b[31m`, got.Phases[0].Name)
		assert.Equal(t, a.Phases[1:], got.Phases[1:])
		assert.Equal(t, `red \x1b[31m`, got.Status.Result.Message, "what people see does not steer their terminal")
		assert.Empty(t, Compare(a, got).Differences)
		dir := got.Status.Tasks[1].Exit.LogDir
		assert.Equal(t, dir, got.Status.Tasks[1].LogDir)
		assert.Contains(t, dir, state)
		text, err := os.ReadFile(filepath.Join(dir, tasklog.StdoutFile))
		require.NoError(t, err)
		assert.Equal(t, "line\n", string(text))
		assert.NoFileExists(t, filepath.Join(got.Status.Tasks[0].LogDir, tasklog.StderrFile), "links are not packed")
		for _, exit := range []*spec.Exit{got.Status.Tasks[1].Exit, got.Status.Result.Tasks[1].Exit} {
			assert.Equal(t, filepath.Join(dir, tasklog.ResultFile), exit.ValueFile)
		}
		all, err := json.Marshal(got.Status)
		require.NoError(t, err)
		assert.NotContains(t, string(all), "passwd", "it is the file that has chosen that")
	}
	for _, other := range [][2]string{{"nosuch", ""}, {"run-aaaa", "0-1-other"}, {"..", ""}, {"*", ""}} {
		found, err := Find(state, other[0], other[1])
		require.NoError(t, err)
		assert.Empty(t, found)
	}
}

// An import that was killed is no run, and does not stay for ever.
func TestKilledImports(t *testing.T) {
	a, histories := sample(t, "run-aaaa", "1")
	var file bytes.Buffer
	require.NoError(t, Pack(&file, a, histories, nil))
	state := t.TempDir()
	_, err := Import(t.Context(), bytes.NewReader(file.Bytes()), state, 1<<20)
	require.NoError(t, err)
	for _, name := range []string{".new-1", ".new-2"} {
		require.NoError(t, os.Rename(filepath.Join(state, "run-aaaa"), filepath.Join(state, name)))
		found, err := Find(state, "run", "")
		require.NoError(t, err)
		assert.Empty(t, found)
		_, err = Import(t.Context(), bytes.NewReader(file.Bytes()), state, 1<<20)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(state, ".new-1", ".lock"), nil, 0o600))
	_, err = Import(t.Context(), bytes.NewReader(file.Bytes()), state, 1<<20)
	require.NoError(t, err)
	assert.NoDirExists(t, filepath.Join(state, ".new-1"))
	assert.DirExists(t, filepath.Join(state, ".new-2"), "it may be being made")

	found, err := All(state)
	require.NoError(t, err)
	require.Len(t, found, 1)
	killed := filepath.Join(state, ".new-3")
	require.NoError(t, os.Mkdir(killed, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(killed, ".lock"), nil, 0o600))
	require.NoError(t, found[0].Remove())
	assert.NoDirExists(t, killed)
	assert.NoDirExists(t, filepath.Join(state, "run-aaaa"))
	left, err := filepath.Glob(filepath.Join(state, ".new-*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(state, ".new-2")}, left, "nothing of its own")

	_, err = Import(t.Context(), bytes.NewReader(file.Bytes()), state, 1<<20)
	require.NoError(t, err)
	dir := filepath.Join(state, "run-aaaa")
	require.Error(t, replace(dir, filepath.Join(state, "nosuch"), filepath.Join(state, "aside")))
	assert.DirExists(t, dir, "the earlier one is back")
}

// endsAtSeek ends a context once a file has been read and is to be read again.
type endsAtSeek struct {
	io.ReadSeeker
	end context.CancelFunc
}

func (e endsAtSeek) Seek(offset int64, whence int) (int64, error) {
	e.end()
	return e.ReadSeeker.Seek(offset, whence)
}

// An import that is interrupted while it unpacks leaves nothing, and no file is called damaged.
func TestInterruptedImport(t *testing.T) {
	a, histories := sample(t, "run-aaaa", "1")
	var file bytes.Buffer
	require.NoError(t, Pack(&file, a, histories, nil))
	state := t.TempDir()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	_, err := Import(ctx, endsAtSeek{bytes.NewReader(file.Bytes()), end}, state, 1<<20)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrRefused)
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
