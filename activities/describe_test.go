package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ended returns a process that has ended and left these files.
func ended(t *testing.T, exit supervisor.Exit, files map[string]string) supervisor.Process {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return supervisor.Process{PID: 123, LogDir: dir, Exit: &exit}
}

const tracedError = `{"message": {"message": "KeyError: 'lr'", "extraInfo": {"py_callstack": "…", "timestamp": "10"}}}`

// If the program reported an error itself, the description has its message, file and time
// (TE-58, TE-60).
func TestDescribeReportedExit_TE58_TE60_SEED87(t *testing.T) {
	p := ended(t, supervisor.Exit{Code: 1}, map[string]string{tasklog.ErrorFile: tracedError, tasklog.StderrFile: "noise\n"})
	e, _ := describeExit("host-a", p, false, "")
	assert.True(t, e.Reported)
	assert.Equal(t, "KeyError: 'lr'", e.Message)
	assert.Equal(t, filepath.Join(p.LogDir, tasklog.ErrorFile), e.ErrorFile)
	assert.Equal(t, time.Unix(10, 0).UTC(), e.ErrorTime, "the program's word, where the file was written much later")

	p = ended(t, supervisor.Exit{Code: 1}, map[string]string{tasklog.ErrorFile: `{"message": "boom"}`})
	e, _ = describeExit("host-a", p, false, "")
	assert.WithinDuration(t, time.Now(), e.ErrorTime, time.Minute, "the file's, where there is no other")
}

// Without an error file, the description has torch's words and the end of stderr (TE-31,
// TE-61, TE-62).
func TestDescribeUnreportedExit_TE31_TE61_TE62_SEED87(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: 138}, map[string]string{tasklog.StderrFile: "last words\n"}), false, "")
	assert.False(t, e.Reported)
	assert.Empty(t, e.ErrorFile)
	assert.Zero(t, e.ErrorTime)
	assert.Equal(t, 138, e.ExitCode)
	assert.Equal(t, "last words", strings.TrimSpace(e.Message))

	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -11}, nil), false, "")
	assert.Equal(t, "SIGSEGV", e.Signal)
	assert.Equal(t, -11, e.ExitCode)
	assert.Equal(t, 123, e.PID)

	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -35}, nil), false, "")
	assert.Equal(t, "<N/A>", e.Signal)
}

// A malformed error file reports nothing, but is named, and the description has what the
// program wrote to stderr (TE-57).
func TestDescribeMalformedErrorFile_TE57(t *testing.T) {
	p := ended(t, supervisor.Exit{Code: 1}, map[string]string{
		tasklog.ErrorFile:  `{"mess": "` + strings.Repeat("x", 5000) + `"}`,
		tasklog.StderrFile: "Traceback\nKeyError: 'lr'\n",
	})
	e, _ := describeExit("host-a", p, false, "")
	assert.False(t, e.Reported)
	assert.Zero(t, e.ErrorTime)
	assert.Equal(t, filepath.Join(p.LogDir, tasklog.ErrorFile), e.ErrorFile)
	assert.Contains(t, e.Message, "error file "+e.ErrorFile+` is malformed: it has no "message"`)
	assert.True(t, strings.HasSuffix(e.Message, "\nTraceback\nKeyError: 'lr'"), e.Message)
	assert.LessOrEqual(t, len(e.Message), maxMessage)
}

func TestDescribeGoodExit(t *testing.T) {
	e, value := describeExit("host-a", ended(t, supervisor.Exit{}, map[string]string{
		tasklog.ErrorFile: tracedError, tasklog.ResultFile: "0.97\n",
	}), false, "")
	assert.Equal(t, spec.CauseCompleted, e.Cause)
	assert.Equal(t, "0.97", string(value))
	assert.Empty(t, e.Message, "it did not fail of the error it once wrote down")
	assert.False(t, e.Reported)
	assert.Zero(t, e.ErrorTime)
}

// If the result is invalid, the failure says so, and does not count as reported by the
// program.
func TestDescribeBadResult(t *testing.T) {
	e, value := describeExit("host-a", ended(t, supervisor.Exit{}, map[string]string{tasklog.ResultFile: "not json", tasklog.StderrFile: "noise\n"}), false, "")
	assert.Nil(t, value)
	assert.True(t, e.BadResult())
	assert.False(t, e.Reported)
	assert.Contains(t, e.Message, "is not one JSON value")
	assert.NotContains(t, e.Message, "noise")
	assert.ErrorContains(t, failed("worker-0", e), "Subprocess worker-0 exited with exit code 0, but what it returned cannot be used: result file")
}

// A program that could not be executed has written nothing, so nothing in its log directory
// is its output.
func TestDescribeStartError(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: 127, StartError: "no such file"}, map[string]string{tasklog.StderrFile: "noise\n"}), false, "")
	assert.Equal(t, "no such file", e.Message)
}

// Without a log directory no files are read.
func TestDescribeExitWithoutLogs(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(tasklog.ErrorFile, []byte(tracedError), 0o600))
	e, value := describeExit("host-a", supervisor.Process{PID: 1, Exit: &supervisor.Exit{Code: 1}}, false, "")
	assert.Empty(t, e.Message)
	assert.Nil(t, value)
}

// A host worker that was asked to end used to be reported as crashed.
func TestAHostWorkerThatWasToldToEndSaysSo(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: -15, Reason: supervisor.ReasonShutdown}, nil), false, "")
	assert.Equal(t, spec.CauseHostLost, e.Cause)
	assert.Equal(t, "the host worker on host-a was stopped, and its tasks with it", e.Message)
	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -9, Lost: true}, nil), false, "")
	assert.Contains(t, e.Message, "the process was lost")
}

// The file of torch's Flight Recorder is named for a process that failed or was stopped. A
// process that has completed may have left one too, but needs no explanation.
func TestTheFlightRecorderIsNamed(t *testing.T) {
	for _, exit := range []supervisor.Exit{{Code: -6}, {Code: -15, Reason: supervisor.ReasonCollateral}, {Code: 0}} {
		p := ended(t, exit, map[string]string{tasklog.TracePrefix + "3": "pickled"})
		want := filepath.Join(p.LogDir, tasklog.TracePrefix+"3")
		if exit.Code == 0 {
			want = ""
		}
		e, _ := describeExit("host-a", p, false, "")
		assert.Equal(t, want, e.TraceFile, "exit code %d", exit.Code)
	}
}
