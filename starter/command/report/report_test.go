package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
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
	var got spec.RunResult
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
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

// The program that started us expects our error file at a path. It gets the error file of the
// root cause (TE-69, TE-70, TE-76, TE-77).
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
	got, err := os.ReadFile(ours)
	require.NoError(t, err)
	assert.JSONEq(t, `{"message": {"message": "KeyError: lr", "errorCode": 3}}`, string(got))

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
