package activities

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ended returns an exited process that left these files.
func ended(t *testing.T, exit supervisor.Exit, files map[string]string) supervisor.Process {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return supervisor.Process{PID: 123, LogDir: dir, Exit: &exit}
}

const tracedError = `{"message": {"message": "KeyError: 'lr'", "extraInfo": {"py_callstack": "…", "timestamp": "10"}}}`

// A signal requested by a user must not look like one from elsewhere.
func TestDescribeARequestedSignal(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: -10, Sent: true}, map[string]string{tasklog.StderrFile: "last words\n"}), false)
	assert.Equal(t, spec.CauseOrigin, e.Cause)
	assert.Equal(t, "SIGUSR1 came from a request, such as `clusterrun signal`\nlast words", e.Message)
}

// A SIGKILL that clusterrun did not send has an explanation, and so has a kill by the kernel to
// free memory.
func TestDescribeOutOfMemory(t *testing.T) {
	stderr := map[string]string{tasklog.StderrFile: "last words\n"}
	for want, exit := range map[string]supervisor.Exit{
		"clusterrun did not send SIGKILL: the program itself or another process did\nlast words":                                      {Code: -9},
		"likely out of memory: the kernel killed 1 process to free memory while it ran, in the cgroup of the host worker\nlast words": {Code: -9, OOMKills: 1, OOMScope: "cgroup"},
		"limits.memory is 5 bytes; the kernel killed 2 processes of the task to free memory":                                          {Code: -9, Reason: supervisor.ReasonOOM, Detail: "limits.memory is 5 bytes", OOMKills: 2, OOMScope: "task"},
		"the kernel killed 1 process to free memory while it ran, on the host":                                                        {Reason: supervisor.ReasonOOM, OOMKills: 1, OOMScope: "host"},
		"last words": {Code: -11},
	} {
		e, _ := describeExit("host-a", ended(t, exit, stderr), false)
		assert.Equal(t, want, e.Message)
		assert.Equal(t, exit.OOMKills, e.OOMKills)
		assert.True(t, e.Cause.ByItself())
	}
}

// A request that does not reach any process of a task must not look like success.
func TestTasksWithoutAProcess(t *testing.T) {
	answer := withUnreached(spec.RequestAnswer{Tasks: []string{"worker-1"}}, []string{"worker-0", "worker-1"})
	assert.Equal(t, []string{"worker-1"}, answer.Tasks)
	require.Len(t, answer.Problems, 1)
	assert.Equal(t, "worker-0", answer.Problems[0].Task)
	assert.Contains(t, answer.Problems[0].Message, "worker-0 has no process at present")
}

// If the program itself reported an error, the description contains its message, file and time
// (TE-60).
func TestDescribeReportedExit_TE58_TE60_SEED87(t *testing.T) {
	p := ended(t, supervisor.Exit{Code: 1}, map[string]string{tasklog.ErrorFile: tracedError, tasklog.StderrFile: "noise\n"})
	e, _ := describeExit("host-a", p, false)
	assert.True(t, e.Reported)
	assert.Equal(t, "KeyError: 'lr'", e.Message)
	assert.Equal(t, filepath.Join(p.LogDir, tasklog.ErrorFile), e.ErrorFile)
	assert.Equal(t, time.Unix(10, 0).UTC(), e.ErrorTime, "the program's word, where the file was written much later")

	p = ended(t, supervisor.Exit{Code: 1}, map[string]string{tasklog.ErrorFile: `{"message": "boom"}`})
	e, _ = describeExit("host-a", p, false)
	assert.WithinDuration(t, time.Now(), e.ErrorTime, time.Minute, "the file's, where there is no other")
}

// Without an error file, the description contains torch's own message and the end of stderr (TE-31,
// TE-61, TE-62).
func TestDescribeUnreportedExit_TE31_TE61_TE62_SEED87(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: 138}, map[string]string{tasklog.StderrFile: "last words\n"}), false)
	assert.False(t, e.Reported)
	assert.Empty(t, e.ErrorFile)
	assert.Zero(t, e.ErrorTime)
	assert.Equal(t, 138, e.ExitCode)
	assert.Equal(t, "last words", strings.TrimSpace(e.Message))

	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -11}, nil), false)
	assert.Equal(t, "SIGSEGV", e.Signal)
	assert.Equal(t, -11, e.ExitCode)
	assert.Equal(t, 123, e.PID)
	assert.Equal(t, "Signal 11 (SIGSEGV) received by PID 123", e.Message)

	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -35}, nil), false)
	assert.Equal(t, "<N/A>", e.Signal)
	assert.Equal(t, "Signal 35 (<N/A>) received by PID 123", e.Message)
}

// A malformed error file reports nothing, but is named, and the description contains the program's
// stderr (TE-57).
func TestDescribeMalformedErrorFile_TE57(t *testing.T) {
	p := ended(t, supervisor.Exit{Code: 1}, map[string]string{
		tasklog.ErrorFile:  `{"mess": "` + strings.Repeat("x", 5000) + `"}`,
		tasklog.StderrFile: "Traceback\nKeyError: 'lr'\n",
	})
	e, _ := describeExit("host-a", p, false)
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
	}), false)
	assert.Equal(t, spec.CauseCompleted, e.Cause)
	assert.Equal(t, "0.97", string(value))
	assert.Empty(t, e.Message, "it did not fail of the error it once wrote down")
	assert.False(t, e.Reported)
	assert.Zero(t, e.ErrorTime)
}

// If the result is invalid, the failure says so, and does not count as reported by the program.
func TestDescribeBadResult(t *testing.T) {
	e, value := describeExit("host-a", ended(t, supervisor.Exit{}, map[string]string{tasklog.ResultFile: "not json", tasklog.StderrFile: "noise\n"}), false)
	assert.Nil(t, value)
	assert.True(t, e.BadResult())
	assert.False(t, e.Reported)
	assert.Contains(t, e.Message, "is not one JSON value")
	assert.NotContains(t, e.Message, "noise")
}

// A program that could not be executed has not written anything, so the files in its log directory
// are not its output.
func TestDescribeStartError(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: 127, StartError: "no such file"}, map[string]string{tasklog.StderrFile: "noise\n"}), false)
	assert.Equal(t, "no such file", e.Message)
}

// Without a log directory no files are read.
func TestDescribeExitWithoutLogs(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(tasklog.ErrorFile, []byte(tracedError), 0o600))
	e, value := describeExit("host-a", supervisor.Process{PID: 1, Exit: &supervisor.Exit{Code: 1}}, false)
	assert.Empty(t, e.Message)
	assert.Nil(t, value)
}

// A host worker that was asked to exit used to be reported as crashed.
func TestAHostWorkerThatWasToldToEndSaysSo(t *testing.T) {
	e, _ := describeExit("host-a", ended(t, supervisor.Exit{Code: -15, Reason: supervisor.ReasonShutdown}, nil), false)
	assert.Equal(t, spec.CauseHostLost, e.Cause)
	assert.Equal(t, "the host worker on host-a was stopped together with its tasks", e.Message)
	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -9, Reason: supervisor.ReasonShutdown, Detail: "its grace was cut"}, nil), false)
	assert.Equal(t, "the host worker on host-a was stopped together with its tasks: its grace was cut", e.Message)
	e, _ = describeExit("host-a", ended(t, supervisor.Exit{Code: -9, Lost: true}, nil), false)
	assert.Contains(t, e.Message, "the process was lost")
}

// The Flight Recorder's file is named for a process that failed or was stopped. A completed process
// may also have left one, but does not need an explanation.
func TestTheFlightRecorderIsNamed(t *testing.T) {
	for _, exit := range []supervisor.Exit{{Code: -6}, {Code: -15, Reason: supervisor.ReasonCollateral}, {Code: 0}} {
		p := ended(t, exit, map[string]string{tasklog.TracePrefix + "3": "pickled"})
		want := filepath.Join(p.LogDir, tasklog.TracePrefix+"3")
		if exit.Code == 0 {
			want = ""
		}
		e, _ := describeExit("host-a", p, false)
		assert.Equal(t, want, e.TraceFile, "exit code %d", exit.Code)
	}
}

func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		exit  supervisor.Exit
		owned bool
		want  spec.Cause
	}{
		"good":                             {exit: supervisor.Exit{}, want: spec.CauseCompleted},
		"bad":                              {exit: supervisor.Exit{Code: 3}, want: spec.CauseOrigin},
		"signal nobody sent (D-01)":        {exit: supervisor.Exit{Code: -11}, want: spec.CauseOrigin},
		"could not be executed":            {exit: supervisor.Exit{Code: 127, StartError: "no such file"}, want: spec.CauseOrigin},
		"stopped":                          {exit: supervisor.Exit{Code: -15, Reason: supervisor.ReasonCollateral}, want: spec.CauseCollateral},
		"stopped, and ended well":          {exit: supervisor.Exit{Reason: supervisor.ReasonCollateral}, want: spec.CauseCompleted},
		"terminated, and ended well":       {exit: supervisor.Exit{Reason: supervisor.ReasonTerminate}, want: spec.CauseOperator},
		"out of time":                      {exit: supervisor.Exit{Code: -9, Reason: supervisor.ReasonMaxRunTime}, want: spec.CauseTimeout},
		"too much output":                  {exit: supervisor.Exit{Code: -9, Reason: supervisor.ReasonLogQuota}, want: spec.CauseLogQuota},
		"out of memory at its limit":       {exit: supervisor.Exit{Code: -9, Reason: supervisor.ReasonOOM}, want: spec.CauseOOM},
		"lost":                             {exit: supervisor.Exit{Code: -9, Lost: true}, want: spec.CauseHostLost},
		"host worker shut down":            {exit: supervisor.Exit{Code: -15, Reason: supervisor.ReasonShutdown}, want: spec.CauseHostLost},
		"owner of the host worker is gone": {exit: supervisor.Exit{Code: -15, Reason: supervisor.ReasonShutdown}, owned: true, want: spec.CauseOperator},
	} {
		assert.Equal(t, c.want, causeOf(&c.exit, c.owned), name)
	}
}

// The restart budget is per launch: start-task begins a new one.
func TestAttemptsOfALaunch(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ended := func(launch, code int, reason supervisor.Reason) supervisor.Process {
		return supervisor.Process{Launch: launch, Started: at, Exit: &supervisor.Exit{Code: code, Reason: reason, Ended: at.Add(time.Second)}}
	}
	processes := []supervisor.Process{
		ended(0, 1, ""), ended(1, 1, ""), ended(1, -15, supervisor.ReasonRestart), {Launch: 1, Started: at},
	}
	for i := range processes {
		processes[i].Number = i
	}
	attempts := (*plan)(nil).attemptsOf(processes, 1, false)
	assert.Len(t, attempts, 2)
	assert.Equal(t, spec.CauseOrigin, attempts[0].Cause)
	assert.Equal(t, time.Second, attempts[0].Lived)
	assert.True(t, attempts[1].OperatorRestart)
	assert.Equal(t, 2, restartsOf(processes, 1))
	assert.Equal(t, 0, restartsOf(processes, 0))
}

func TestBeatsComeTogether(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 700_000_000, time.UTC)
	assert.Equal(t, 7300*time.Millisecond, untilBeat(at, 8*time.Second, 0))
	assert.Equal(t, 300*time.Millisecond, untilBeat(at, time.Second, 0))
	assert.Equal(t, time.Second, untilBeat(at.Truncate(time.Second), time.Second, 0))
	assert.Equal(t, 7500*time.Millisecond, untilBeat(at, 8*time.Second, 200*time.Millisecond))
	assert.Equal(t, 200*time.Millisecond, untilBeat(at, time.Second, 900*time.Millisecond))
	assert.NotEqual(t, phaseOf("oyufdd7a"), phaseOf("oyufdd7b"))
}

func TestBeatInterval(t *testing.T) {
	assert.Equal(t, time.Second, beatInterval(1, 20*time.Second))
	assert.Equal(t, 2*time.Second, beatInterval(64, 20*time.Second))
	assert.Equal(t, 8*time.Second, beatInterval(1000, 20*time.Second))
	assert.Equal(t, 24*time.Second, beatInterval(1000, time.Minute))
}

// An attempt at a run that this host has released is not retried: the task is lost.
func TestATaskOfAReleasedRunIsLost(t *testing.T) {
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Log: zap.NewNop()}))(t)
	exit := must.Get(h.answer(fmt.Errorf("start: %w", supervisor.ErrReleased)))(t)
	assert.Equal(t, spec.CauseHostLost, exit.Cause)
	assert.Equal(t, "the process was lost: on host host-a the run was released before", exit.Message)
}

// The supervisor does not report all processes of a launch, but it reports how many failed.
func TestRestartsBeyondTheProcessesThatAreKnown(t *testing.T) {
	failed := func(number, failures int) supervisor.Process {
		return supervisor.Process{Number: number, Failures: failures, Exit: &supervisor.Exit{Code: 1}}
	}
	// Two of the processes in between were stopped by an operator.
	processes := []supervisor.Process{failed(0, 1), failed(400, 399), failed(401, 400), failed(402, 0)}
	p := &plan{Spec: (&spec.RunSpec{AutoRestart: true}).WithDefaults()}
	history := p.historyOf(processes, 0, false)
	assert.Equal(t, 400, history.Counted)
	assert.Equal(t, 401, history.Failures())
	assert.Equal(t, 402, restartsOf(processes, 0))
	for limit, want := range map[int]bool{400: false, 401: true} {
		p.Spec.MaxRestarts = &limit
		_, again := p.next(history, false)
		assert.Equal(t, want, again, limit)
	}
}

// Processes that outlived their program are reported only if the program exited without being
// stopped: a stop kills all of them anyway.
func TestExitTellsWhatWasLeftBehind(t *testing.T) {
	of := func(why supervisor.Reason) int {
		return exitOf(supervisor.Process{Exit: &supervisor.Exit{Reason: why, Swept: 3, Killed: 2}}, false).LeftBehind
	}
	require.Equal(t, 2, of(supervisor.ReasonNone))
	require.Zero(t, of(supervisor.ReasonCollateral))
}

// An excerpt of a traceback starts with a frame.
func TestFromFrame(t *testing.T) {
	const frame = "  File \"train.py\", line 3, in step\n    load()\nValueError: shard 3\n"
	for words, want := range map[string]string{
		"    a(n-1), 0)\n    ^^^^^^\n" + frame:            frame,
		"    indented\nValueError: shard 3\n":             "    indented\nValueError: shard 3\n",
		"epoch 1\n" + frame:                               "epoch 1\n" + frame,
		"epoch 1\n" + frame + strings.Repeat("note\n", 5): frame + strings.Repeat("note\n", 5),
		"    the only line, which has no newline":         "    the only line, which has no newline",
		"": "",
	} {
		assert.Equal(t, want, fromFrame(words))
	}
}

// A task is given up despite remaining restarts if its processes keep failing with the same error.
// The grants' notes contain the counts, since earlier processes' output may be gone.
func TestSameErrors(t *testing.T) {
	p := &plan{Spec: (&spec.RunSpec{AutoRestart: true, MaxRestarts: new(9)}).WithDefaults()}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var processes []supervisor.Process
	end := func(launch int, line string, lived time.Duration, step *float64) bool {
		processes = append(processes, supervisor.Process{Number: len(processes), Launch: launch, Exit: &supervisor.Exit{Code: 1}})
		exit := spec.Exit{Cause: spec.CauseOrigin, Started: at, Ended: at.Add(lived), LastStep: step, Printed: &spec.PrintedError{Kind: "python", Line: line}}
		history := p.historyOf(processes, launch, false)
		_, again := p.next(history, false)
		assert.True(t, again)
		history.Same = sameErrors(processes, "worker-0", exit)
		processes[len(processes)-1].Note = string(must.Get(json.Marshal(history.Same))(t))
		return p.restartPolicy().Hopeless(history)
	}
	assert.False(t, end(0, "ValueError: 1", time.Second, nil))
	assert.False(t, end(0, "ValueError: 2", time.Second, new(0.)), "its first step is progress")
	assert.False(t, end(0, "ValueError: 3", time.Second, new(0.)))
	assert.False(t, end(0, "KeyError: 3", time.Second, nil), "another error")
	assert.False(t, end(0, "ValueError: 3", time.Second, nil))
	assert.False(t, end(0, "ValueError: 4", time.Minute, nil), "it may have made progress")
	assert.False(t, end(0, "ValueError: 4", time.Second, nil))
	assert.False(t, end(1, "ValueError: 4", time.Second, nil), "clusterrun start begins again")
	assert.False(t, end(1, "ValueError: 5", time.Hour, new(0.)))
	assert.False(t, end(1, "ValueError: 66", time.Second, nil))
	assert.True(t, end(1, "ValueError: 0x7f", time.Second, nil))
	p.Spec.GiveUpOnSameError = new(0)
	assert.False(t, end(1, "ValueError: 66", time.Second, nil), "never")
}

// A file in shared memory counts as left if the run's user created it while its processes lived.
func TestLeftInShm(t *testing.T) {
	began := time.Now()
	f := must.Get(os.CreateTemp(diskspace.ShmDir, "clusterrun-test-"))(t)
	defer os.Remove(f.Name())
	require.NoError(t, f.Close())
	left := func(from, to time.Duration, user *hostuser.User) []string {
		exit := &supervisor.Exit{Ended: began.Add(to)}
		earlier := supervisor.Process{Started: began.Add(-2 * time.Hour), Exit: &supervisor.Exit{Ended: began.Add(-time.Hour)}}
		processes := []supervisor.Process{{Started: began.Add(from), Exit: exit}}
		if from < 0 {
			processes = append(processes, earlier, supervisor.Process{})
		}
		names := []string{}
		for _, file := range must.Get((&plan{User: user}).leftInShm(processes))(t) {
			if file.Name == filepath.Base(f.Name()) {
				names = append(names, file.Name)
			}
		}
		return names
	}
	if len(left(-time.Minute, time.Minute, nil)) == 0 {
		t.Skip("the kernel does not know when files in shared memory were created")
	}
	assert.Empty(t, left(-time.Hour, -time.Minute, nil), "created later")
	assert.Empty(t, left(time.Minute, time.Hour, nil), "created before")
	assert.Empty(t, left(-time.Minute, time.Minute, &hostuser.User{UID: uint32(os.Getuid()) + 1}), "of another user")
}
