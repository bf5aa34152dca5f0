package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// reported returns the output of Report and its exit code.
func reported(t *testing.T, asJSON bool, result *spec.RunResult, err error) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &cli.App{Out: &out, Err: &errs}
	a.Global.JSON = asJSON
	code = a.Exit(Report(a, "iris-1", result, err))
	return out.String(), errs.String(), code
}

func TestReportOfSuccess(t *testing.T) {
	stdout, stderr, code := reported(t, false, &spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{
		{Name: "chief-0", Value: json.RawMessage("0.97")}, {Name: "worker-0"},
		{Name: "worker-1", Value: json.RawMessage(`{ "loss": 1 }`)},
	}}, nil)
	assert.Empty(t, stdout)
	assert.Equal(t, "clusterrun: run iris-1 succeeded\n  chief-0 returned 0.97\n  worker-1 returned {\"loss\":1}\n", stderr)
	assert.Zero(t, code)
}

func TestReportOfFailure(t *testing.T) {
	result := &spec.RunResult{
		Verdict: spec.VerdictFailed, ExitCode: 10, Message: "Subprocess worker-0 exited with exit code 10",
		FirstFailure: &spec.Failure{Task: "worker-0", Exit: spec.Exit{ExitCode: 10, Cause: spec.CauseOrigin, LogDir: "/logs/0"}},
		Tasks: []spec.TaskResult{
			{Name: "worker-0", Exit: &spec.Exit{ExitCode: 10, Cause: spec.CauseOrigin}, Failed: true},
			{Name: "worker-1", Exit: &spec.Exit{ExitCode: -9, Signal: "SIGKILL", Cause: spec.CauseOrigin}, Failed: true},
			{Name: "worker-2", Exit: &spec.Exit{ExitCode: -15, Signal: "SIGTERM", Cause: spec.CauseCollateral}},
		},
	}
	_, stderr, code := reported(t, false, result, &starter.Error{RunID: "iris-1", Result: result})
	assert.Equal(t, `clusterrun: run iris-1 failed: Subprocess worker-0 exited with exit code 10
  Root cause: worker-0 (rank 0)
  1 other failed after it: worker-1 (SIGKILL)
  1 was stopped because of it: worker-2
  Logs: clusterrun logs iris-1 worker-0
`, stderr)
	assert.Equal(t, 10, code)
}

func TestReportAsJSON(t *testing.T) {
	result := &spec.RunResult{Verdict: spec.VerdictCancelled, ExitCode: 130, Tasks: []spec.TaskResult{}}
	stdout, _, code := reported(t, true, result, &starter.Error{Result: result})
	got := must.JSON[spec.RunResult](t, stdout)
	assert.Equal(t, *result, got)
	assert.Equal(t, 130, code)

	// Without a result, the JSON still has one.
	stdout, stderr, code := reported(t, true, nil, &starter.TerminatedError{RunID: "iris-1", Reason: "why"})
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "Terminated", got.ErrorType)
	assert.Equal(t, 125, got.ExitCode)
	assert.Contains(t, stdout, `"tasks": []`, "a list, also where nothing was started")
	assert.Contains(t, stderr, "run iris-1 was terminated (why) and left no result")
	assert.Equal(t, 125, code)

	_, stderr, code = reported(t, false, nil, errors.New("no server"))
	assert.Contains(t, stderr, "no server")
	assert.Equal(t, 125, code)
}

// The program that started us expects our error file at a path. It receives the root cause's.
func TestReportHandsTheErrorFileOn_TE69_TE70_TE76_TE77(t *testing.T) {
	dir := t.TempDir()
	childs, ours := filepath.Join(dir, "child.json"), filepath.Join(dir, "ours.json")
	require.NoError(t, os.WriteFile(childs, []byte(`{"message": {"message": "KeyError: lr"}}`), 0o600))
	result := &spec.RunResult{
		Verdict: spec.VerdictFailed, ExitCode: 3, Message: "worker-0 reported an error: KeyError: lr",
		FirstFailure: &spec.Failure{Task: "worker-0", Host: "host-a", Exit: spec.Exit{ExitCode: 3, ErrorFile: childs}},
	}
	fail := func() string {
		_, stderr, code := reported(t, false, result, &starter.Error{Result: result})
		assert.Equal(t, 3, code)
		return stderr
	}
	t.Setenv("TORCHELASTIC_ERROR_FILE", "")
	t.Setenv("CLUSTERRUN_ERROR_FILE", "")
	assert.NotContains(t, fail(), "error file", "nobody asks for it")

	t.Setenv("CLUSTERRUN_ERROR_FILE", ours)
	assert.NotContains(t, fail(), "replaced")
	assert.JSONEq(t, `{"message": {"message": "KeyError: lr", "errorCode": 3}}`, must.Read(t, ours))

	assert.Contains(t, fail(), "replaced "+ours)

	// If both are set, torch's launcher is the nearer one.
	t.Setenv("TORCHELASTIC_ERROR_FILE", filepath.Join(dir, "torch.json"))
	fail()
	assert.FileExists(t, filepath.Join(dir, "torch.json"))

	// The error file is on another host, or there is none.
	require.NoError(t, os.Remove(childs))
	require.NoError(t, os.Remove(filepath.Join(dir, "torch.json")))
	assert.Contains(t, fail(), "the error file of worker-0 is on host-a")
	result.FirstFailure.ErrorFile = ""
	assert.NotContains(t, fail(), "error file")
	assert.NoFileExists(t, filepath.Join(dir, "torch.json"))
}

func TestProgressColumn(t *testing.T) {
	assert.Equal(t, "-", ProgressColumn(nil))
	assert.Equal(t, "7", ProgressColumn(&spec.Progress{Current: 7}))
	assert.Equal(t, "42% (420/1000) loss 0.3", ProgressColumn(&spec.Progress{Current: 420, Total: 1000, Message: "loss 0.3"}))
	assert.Equal(t, "99% (2.99/3)", ProgressColumn(&spec.Progress{Current: 2.99, Total: 3}), "not done before it is")
	assert.Equal(t, "100% (5/3)", ProgressColumn(&spec.Progress{Current: 5, Total: 3}))
}

// Programs may report any numbers.
func TestExtremeProgress(t *testing.T) {
	for _, p := range []spec.Progress{
		{Current: math.MaxFloat64, Total: math.SmallestNonzeroFloat64}, {Current: math.SmallestNonzeroFloat64, Total: math.MaxFloat64},
		{Current: math.MaxFloat64, Total: math.MaxFloat64}, {Total: math.MaxFloat64},
	} {
		assert.Regexp(t, `^(0|100)% \(\S+/\S+\)$`, ProgressColumn(&p))
		s := &starter.Status{Open: true, Tasks: []starter.TaskStatus{{
			TaskStatus: spec.TaskStatus{State: spec.TaskRunning}, Started: time.Unix(0, 0), Progress: &p,
		}}}
		assert.Regexp(t, `^run · [^·]+ · (0|100)%(, [0-9hms]+ left)? · 0s$`, LiveLine("run", outcome.Facts(s, time.Now()), time.Now()))
	}
}

func TestNewsOfARun(t *testing.T) {
	var n News
	of := func(s starter.Status) string {
		s.RunID, s.Queue, s.Open = "big", "clusterrun", true
		s.Facts = outcome.Facts(&s, time.Now())
		return outcome.Line(n.Of(&s))
	}
	running := starter.Status{State: spec.RunRunning, Tasks: []starter.TaskStatus{{TaskStatus: spec.TaskStatus{Name: "worker-0", State: spec.TaskRunning}}}}
	assert.Equal(t, "running: 1 running", of(running))
	assert.Empty(t, of(running))
	running.Tasks[0].Restarts = 1
	running.Tasks[0].Progress = &spec.Progress{Current: 1, Total: 4}
	assert.Equal(t, "1 task was started again: worker-0 (1 time)", of(running), "progress is no news")
	unanswered := starter.Status{Unanswered: true}
	assert.Empty(t, of(unanswered), "it may be late")
	assert.Empty(t, of(running))
	assert.Empty(t, of(unanswered))
	assert.Contains(t, of(unanswered), "its host worker does not answer")
}

// Text is drawn over its previous version, leaving the rest of the terminal alone.
func TestRedrawnText(t *testing.T) {
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	require.NoError(t, pty.SetSize(slave, 5, 14))
	r := &cli.Redrawn{Terminal: slave}
	written := func(text string) string {
		require.NoError(t, r.Show(text))
		b, all := make([]byte, 1000), ""
		for !strings.HasSuffix(all, "\x1b[J") { // a terminal may split output into several pieces
			n := must.Get(master.Read(b))(t)
			all += string(b[:n])
		}
		return strings.ReplaceAll(strings.ReplaceAll(all, "\r\n", "\n"), "\x1b[K", "")
	}
	assert.Equal(t, "\rone\ntwo\n\x1b[J", written("one\ntwo\n"))
	assert.Equal(t, "\r\x1b[2A1234567890123…\n\x1b[J", written("123456789012345"), "cut to the width")
	assert.Equal(t, "\r\x1b[1A1\n2\n3\n… 3 more lines\n\x1b[J", written("1\n2\n3\n4\n5\n6"), "cut to the height")
	assert.Equal(t, "\r\x1b[4A世界世界世界…\n\x1b[J", written("世界世界世界世界"), "by columns")
	f := must.Get(os.Open(os.DevNull))(t)
	defer f.Close()
	assert.Error(t, (&cli.Redrawn{Terminal: f}).Show("x"))
}
