package activities

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		exit  supervisor.Exit
		owned bool
		call  string
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
		"good, in the middle of a call":    {exit: supervisor.Exit{}, call: "closure 1 of f", want: spec.CauseOrigin},
		"stopped in the middle of a call":  {exit: supervisor.Exit{Reason: supervisor.ReasonRestart}, call: "closure 1 of f", want: spec.CauseOperator},
		"lost":                             {exit: supervisor.Exit{Code: -9, Lost: true}, want: spec.CauseHostLost},
		"host worker shut down":            {exit: supervisor.Exit{Code: -15, Reason: supervisor.ReasonShutdown}, want: spec.CauseHostLost},
		"owner of the host worker is gone": {exit: supervisor.Exit{Code: -15, Reason: supervisor.ReasonShutdown}, owned: true, want: spec.CauseOperator},
	} {
		assert.Equal(t, c.want, causeOf(&c.exit, c.owned, c.call), name)
	}
}

// The budget of restarts counts by launch: start-task begins a new one.
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

// An attempt at a run that this host has released fails once and is not retried.
func TestATaskOfAReleasedRunIsLost(t *testing.T) {
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Log: zap.NewNop()})
	require.NoError(t, err)
	err = h.answer("worker-0", fmt.Errorf("start: %w", supervisor.ErrReleased))
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	assert.True(t, app.NonRetryable())
	assert.Equal(t, spec.ErrHostLost, app.Type())
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

// Processes that outlived their program are reported only if the program ended by itself: a
// stop ends all of them anyway.
func TestExitTellsWhatWasLeftBehind(t *testing.T) {
	of := func(why supervisor.Reason) int {
		return exitOf(supervisor.Process{Exit: &supervisor.Exit{Reason: why, Swept: 3, Killed: 2}}, false, "").LeftBehind
	}
	require.Equal(t, 2, of(supervisor.ReasonNone))
	require.Zero(t, of(supervisor.ReasonCollateral))
}
