package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// silentSupervisor records which tasks are stopped. It does not know any processes, so that stacks
// are not captured.
type silentSupervisor struct {
	supervisor.API
	stops []supervisor.StopRequest
}

func (s *silentSupervisor) Stop(_ context.Context, r supervisor.StopRequest) (supervisor.TasksReply, error) {
	s.stops = append(s.stops, r)
	return supervisor.TasksReply{}, nil
}

func (s *silentSupervisor) Processes(context.Context, runkey.Run) (supervisor.ProcessesReply, error) {
	return supervisor.ProcessesReply{}, nil
}

// on_silence takes effect once all of the run's tasks on the host are silent, and again only after
// one of them has shown activity.
func TestOnSilence(t *testing.T) {
	s := &silentSupervisor{}
	h := assemble(&core{Config: Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Log: zap.NewNop()}, now: time.Now})
	h.services = must.Get(taskservices.New(taskservices.Config{StateDir: h.StateDir, Log: h.Log}))(t)
	t.Cleanup(h.services.Close)
	p := &plan{Spec: &spec.RunSpec{Silence: "1m", OnSilence: spec.OnSilenceStop, Stop: spec.Stop{Signal: "SIGINT"}}}
	leaseOf := func(run, task string) *taskLease {
		l := &taskLease{Host: h, plan: p, key: runkey.Task{Run: runkey.Run{WorkflowID: run}, Task: task}}
		h.leases.attach(l.key)
		return l
	}
	a, b := leaseOf("run", "worker-0"), leaseOf("run", "worker-1")
	leaseOf("other", "worker-0")
	begun := time.Now()
	seen := func(l *taskLease, after time.Duration, signs lifecycle.Liveness) (u spec.LiveUsage) {
		l.silentFor(&u, begun.Add(after), signs)
		return u
	}
	look := func(l *taskLease, after time.Duration, output int64) int {
		return seen(l, after, lifecycle.Liveness{Output: output}).SilentSeconds
	}
	for _, l := range []*taskLease{a, b} {
		assert.Zero(t, look(l, 0, 0))
		assert.False(t, l.mustAct())
	}
	assert.Equal(t, 60, look(a, time.Minute, 0))
	assert.False(t, a.mustAct(), "the other one has not been looked at")
	assert.Zero(t, look(b, time.Minute, 1))
	assert.False(t, a.mustAct(), "the other one works")
	assert.Equal(t, 60, look(b, 2*time.Minute, 1))
	assert.True(t, a.mustAct())
	assert.False(t, a.mustAct(), "once")
	assert.False(t, b.mustAct(), "once for all of them")
	assert.Equal(t, 120, look(a, 3*time.Minute, 0))
	assert.False(t, a.mustAct(), "once")
	assert.Zero(t, look(a, 4*time.Minute, 1), "a sign")
	assert.False(t, a.mustAct())
	assert.Equal(t, 60, look(a, 5*time.Minute, 1))
	assert.True(t, a.mustAct(), "again")
	look(a, 6*time.Minute, 2)
	h.leases.detach(b.key, false)
	look(a, 7*time.Minute, 2)
	assert.True(t, a.mustAct(), "it is the last one here")

	// The run gets the request, and does the rest.
	run := &silentRun{}
	h.Runs = run
	p.Spec.OnSilence = spec.OnSilenceReport
	h.silenced.actOnSilence(t.Context(), p, a.key)
	require.Len(t, run.asked, 2, "it is told again until it answers")
	assert.Equal(t, run.asked[0], run.asked[1], "the same request")
	assert.Equal(t, spec.UpdateSilent.Name, run.asked[0].Name)
	assert.Equal(t, spec.SilentRequest{Host: "host-a", Tasks: []string{"worker-0"}}, run.asked[0].Input)
	assert.Empty(t, s.stops)

	// A run that is not served does nothing.
	p.Spec.OnSilence = spec.OnSilenceStop
	require.NoError(t, h.silenced.silentAlone(t.Context(), p, []string{"worker-0"}))
	require.Len(t, s.stops, 1)
	stop := s.stops[0]
	assert.Equal(t, []string{"worker-0"}, stop.Tasks)
	assert.Equal(t, 2, stop.Signal)
	assert.Equal(t, supervisor.ReasonSilence, stop.Reason)
	assert.Equal(t, "silent for 1m: no output, no progress and no processor time", stop.Detail)
	exit := exitOf(supervisor.Process{Exit: &supervisor.Exit{Reason: stop.Reason, Detail: stop.Detail}}, false)
	assert.Equal(t, spec.CauseSilence, exit.Cause, "whatever its exit code")
	assert.True(t, exit.Cause.ByItself(), "a failure")

	p.Spec.OnSilence = spec.OnSilenceReport
	require.NoError(t, h.silenced.silentAlone(t.Context(), p, []string{"worker-0"}))
	assert.Len(t, s.stops, 1)

	// A task that waits for NCCL uses a processor.
	busy := func(after time.Duration) int {
		return seen(a, after, lifecycle.Liveness{Output: 2, CPU: after}).SilentSeconds
	}
	busy(8 * time.Minute)
	assert.Zero(t, busy(10*time.Minute))
	p.Spec.SilenceIgnoresCPU = true
	assert.Equal(t, 60, busy(11*time.Minute))
	assert.Equal(t, "silent for 1m: no output and no progress", silenceText(p.Spec))

	// The limit is learnt from the longest pause, here of three minutes.
	p.Spec.Silence = spec.SilenceAuto
	assert.Equal(t, spec.LiveUsage{SilentAfter: 600}, seen(a, 12*time.Minute, lifecycle.Liveness{Output: 4}), "the least")
	for minutes := 13; minutes <= 15; minutes++ {
		assert.Zero(t, look(a, time.Duration(minutes)*time.Minute, 4))
	}
	assert.Equal(t, "silent for much longer than before: no output and no progress", silenceText(p.Spec))
	assert.Equal(t, spec.LiveUsage{SilentAfter: 900}, seen(a, 16*time.Minute, lifecycle.Liveness{Output: 5}))
	for minutes := 17; minutes < 16+15; minutes++ {
		assert.Zero(t, look(a, time.Duration(minutes)*time.Minute, 5))
		assert.False(t, a.mustAct())
	}
	assert.Equal(t, spec.LiveUsage{SilentAfter: 900, SilentSeconds: 900}, seen(a, 31*time.Minute, lifecycle.Liveness{Output: 5}))
	assert.True(t, a.mustAct())

	p.Spec.Silence = ""
	assert.Zero(t, look(a, time.Hour, 2))
	assert.False(t, a.mustAct())
}

// silentRun is a run that answers the second request.
type silentRun struct {
	taskservices.Runs
	asked []taskservices.RunUpdate
}

func (r *silentRun) Update(_ context.Context, _ runkey.Run, q taskservices.RunUpdate, _ any) error {
	if r.asked = append(r.asked, q); len(r.asked) == 1 {
		return errors.New("the server is away")
	}
	return nil
}

func textValue(sign string, bytes int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat(sign, bytes-2) + `"`)
}

// One value of the largest size is always returned, with any content.
func TestTheLargestValueFits(t *testing.T) {
	o := hostapi.ReleaseOutput{Values: map[string]json.RawMessage{"worker-0": textValue("x", taskapi.MaxResult)}}
	fit(&o)
	assert.Len(t, o.Values, 1)
	assert.Empty(t, o.LeftOut)
}

// If not all values fit, the largest are left out, measured as they are sent, and as few as
// possible.
func TestValuesThatDoNotFit(t *testing.T) {
	o := hostapi.ReleaseOutput{
		Exits: map[string][]spec.Exit{"worker-0": {{Message: "first"}, {Message: strings.Repeat("m", 1000)}}},
		Values: map[string]json.RawMessage{
			"angles": textValue("<", 100<<10), // six times as long when sent
			"small":  json.RawMessage("1"),
		},
	}
	for i := range 4 {
		o.Values[fmt.Sprint("large-", i)] = textValue("x", 200<<10)
	}
	fit(&o)
	assert.Equal(t, []string{"angles"}, o.LeftOut)
	assert.Len(t, o.Values, 5)
	assert.LessOrEqual(t, shorten.Size(o), maxReleasePayload)
	assert.Len(t, o.Exits["worker-0"], 2, "the exits take little")
}

// A host with any number of tasks can release the run.
func TestTheMostTasksOfAHostFit(t *testing.T) {
	o := hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}, Values: map[string]json.RawMessage{}}
	for i := range spec.MaxTasks {
		task := spec.TaskName("worker", i)
		e := spec.Exit{PID: i, Cause: spec.CauseCompleted, Started: time.Now(), Ended: time.Now(), BootNanos: 1 << 60, LogDir: strings.Repeat("d", 200)}
		if i == 7 {
			e.Cause, e.ExitCode, e.Message = spec.CauseOrigin, 3, "no such file"
		}
		o.Exits[task] = []spec.Exit{e}
		o.Values[task] = json.RawMessage("1")
	}
	fit(&o)
	assert.LessOrEqual(t, shorten.Size(o), maxReleasePayload)
	assert.Len(t, o.Exits, spec.MaxTasks, "all are tasks of this host")
	assert.Equal(t, 3, o.Exits["worker-7"][0].ExitCode)
	assert.Empty(t, o.Exits["worker-8"])
	assert.Empty(t, o.LeftOut)

	o = hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}}
	for i := range 1000 {
		o.Exits[spec.TaskName("worker", i)] = []spec.Exit{{Message: "first"}, {Message: strings.Repeat("m", 1000)}}
	}
	fit(&o)
	assert.LessOrEqual(t, shorten.Size(o), maxReleasePayload)
	require.Len(t, o.Exits["worker-0"], 1, "older exits go first")
	assert.Len(t, o.Exits["worker-0"][0].Message, 200)
}
