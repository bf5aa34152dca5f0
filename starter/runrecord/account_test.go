package runrecord

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

func at(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0).UTC() }

func scheduled(seconds int, activity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventTime: timestamppb.New(at(seconds)), Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: activity}},
	}}
}

// sample returns the account of a run of two tasks; the second one failed.
func sample(t *testing.T, id, level string) (*Account, []*historypb.History) {
	t.Helper()
	exits := []spec.Exit{
		{Cause: spec.CauseCollateral, Signal: "SIGTERM", ExitCode: -15, Started: at(6), Ended: at(31)},
		{Cause: spec.CauseOrigin, ExitCode: 3, Started: at(7), Ended: at(30), Message: "boom in " + id},
	}
	s := &starter.Status{RunID: id, ExecutionID: "0-1-" + id, Started: at(0), Ended: at(33), State: spec.RunEnded, Verdict: spec.VerdictFailed,
		Result: &spec.RunResult{Verdict: spec.VerdictFailed, ExitCode: 3, FirstFailure: &spec.Failure{Task: "worker-1", Exit: spec.Exit{Cause: spec.CauseOrigin, Ended: at(30)}}}}
	root := t.TempDir()
	for i, name := range []string{"worker-0", "worker-1"} {
		exits[i].LogDir = tasklog.ProcessDir(tasklog.RunDir(root, id, s.ExecutionID), 0, i)
		require.NoError(t, os.MkdirAll(exits[i].LogDir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(exits[i].LogDir, tasklog.StdoutFile), []byte("line\n"), 0o600))
		start := tasklog.Start{Version: "1", Dir: "/"}
		start.Variables([]string{"LEVEL=" + level, "RUN_TOKEN=x", "CLUSTERRUN_RUN_ID=" + id, "OUT=/out/" + id, "SHELL_LEVEL=" + level}, []string{"SHELL_LEVEL=" + level}, func(string) bool { return false })
		require.NoError(t, start.Write(exits[i].LogDir))
		s.Tasks = append(s.Tasks, starter.TaskStatus{
			TaskStatus: spec.TaskStatus{Name: name, Type: "worker", Index: i, Rank: i, Host: "a", Exit: &exits[i]}, LogDir: exits[i].LogDir,
		})
		s.Result.Tasks = append(s.Result.Tasks, spec.TaskResult{Name: name, Exit: &exits[i]})
	}
	histories := []*historypb.History{{Events: []*historypb.HistoryEvent{
		scheduled(2, hostapi.Name(hostapi.Host.Reserve)), scheduled(5, hostapi.Name(hostapi.Host.RunTask)), scheduled(6, hostapi.Name(hostapi.Host.Reserve)),
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
		scheduled(3, hostapi.Name(hostapi.Host.RunTask)),
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
	}, c.Differences, "what the ID makes another, and secrets, are none")
	assert.Empty(t, c.Unknown)
	assert.Empty(t, Compare(a, a).Differences)

	b, _ = sample(t, "run-bbbb", "1")
	b.Status.Tasks[1].Host, b.Status.Tasks[0].Restarts = "b", 2
	b.Status.Tasks[1].Exit.Cause = spec.CauseOOM
	b.Status.Result.ExitCode = 4
	b.Status.Result.Tasks[0].Value = []byte(`{"loss":1}`)
	b.Phases = b.Phases[:1]
	c = Compare(a, b)
	assert.Equal(t, []Difference{
		{In: "placement", What: "host", Tasks: both[1:], A: new("a"), B: new("b")},
		{In: "causes", What: "cause", Tasks: both[1:], A: new("origin"), B: new("oom")},
		{In: "restarts", What: "restarts", Tasks: both[:1], A: new("0"), B: new("2")},
		{In: "result", What: "exit code", A: new("3"), B: new("4")},
		{In: "result", What: "value of worker-0", B: new(`{"loss":1}`)},
	}, c.Differences)
	assert.Len(t, c.Durations, 5)
	assert.Nil(t, c.Durations[4].B)

	a.Spec.Command, b.Spec.Command = []string{"sh", "-c", "x > y"}, []string{"sh", "-c", "x >> y"}
	assert.Contains(t, Compare(a, b).Differences,
		Difference{In: "spec", What: "command", A: new(`["sh","-c","x > y"]`), B: new(`["sh","-c","x >> y"]`)}, "as it was written")

	b.Spec = nil
	assert.Contains(t, Compare(a, b).Unknown[0], "cannot read the spec of run-bbbb")
}

// An archive opens without clusterrun: it is a directory with readable text and JSON.
func TestPack(t *testing.T) {
	a, histories := sample(t, "run-aaaa", "1")
	runDir, _, _, _ := tasklog.SplitProcessDir(a.Status.Tasks[0].LogDir)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(a.Status.Tasks[0].LogDir, tasklog.StderrFile)))
	require.NoError(t, os.WriteFile(filepath.Join(a.Status.Tasks[1].LogDir, tasklog.ResultFile), []byte("1"), 0o600))
	a.Spec.Ship.Archive = &spec.Archive{}
	files := packed(t, a, histories, runDir, runDir)
	assert.ElementsMatch(t, []string{
		"README", "account.json", "history.json", "spec.yaml",
		"logs/attempt_0/0/start.json", "logs/attempt_0/0/stdout.log",
		"logs/attempt_0/1/result.json", "logs/attempt_0/1/start.json", "logs/attempt_0/1/stdout.log",
	}, slices.Collect(maps.Keys(files)), "no links, and nothing twice")
	assert.Contains(t, files["README"], "Run run-aaaa of clusterrun (execution 0-1-run-aaaa)")
	assert.NotContains(t, files["README"], "no spec.yaml")
	assert.Equal(t, "line\n", files["logs/attempt_0/1/stdout.log"])
	got := must.JSON[Account](t, files["account.json"])
	assert.Empty(t, Compare(a, &got).Differences)
	again := must.Get(spec.DecodeYAML([]byte(files["spec.yaml"])))(t)
	assert.Equal(t, a.Spec.Command, again.Command)
	assert.Nil(t, again.Ship.Archive)
	events := must.JSON[[]struct{ Events []json.RawMessage }](t, files["history.json"])
	assert.Len(t, events[0].Events, 3)

	a.Spec, a.Keys, a.Status.RunID = nil, []string{"one"}, "../evil\x1b[31m"
	files = packed(t, a, histories)
	assert.NotContains(t, files, "spec.yaml")
	assert.Contains(t, files["README"], `There is no spec.yaml: it is encoded with the key "one".`)
	assert.NotContains(t, files["README"], "\x1b")
}

// packed returns an archive's files by their names in its directory.
func packed(t *testing.T, a *Account, histories []*historypb.History, logs ...string) map[string]string {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, Pack(&file, a, histories, logs))
	zip := must.Get(gzip.NewReader(&file))(t)
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		dir, name, _ := strings.Cut(h.Name, "/")
		require.Equal(t, DirName(a.Status.RunID), dir)
		require.True(t, filepath.IsLocal(h.Name), h.Name)
		require.NotContains(t, files, name)
		text := must.Get(io.ReadAll(archive))(t)
		files[name] = string(text)
	}
}
