package page

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

func task(rank int, name string, state spec.TaskState, exit *spec.Exit) starter.TaskStatus {
	return starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: "worker", Index: rank, Rank: rank, Host: "gpu-1", State: state, Exit: exit}}
}

// The task that failed first is distinguished from its victims, and its words are shown once.
func TestThePageOfAFailedRun(t *testing.T) {
	origin := spec.Exit{PID: 7, ExitCode: 3, Cause: spec.CauseOrigin, Started: noon, Ended: noon.Add(10 * time.Second), Message: "ValueError: no data", Usage: spec.Usage{UserSeconds: 5, MaxRSSBytes: 1 << 20}}
	victim := spec.Exit{ExitCode: -15, Signal: "SIGTERM", Cause: spec.CauseCollateral}
	s := &starter.Status{
		RunID: "iris", State: spec.RunEnded, Verdict: spec.VerdictFailed, Started: noon, Ended: noon.Add(time.Minute),
		Tasks: []starter.TaskStatus{task(0, "worker-0", spec.TaskEnded, &victim), task(1, "worker-1", spec.TaskEnded, &origin), task(2, "worker-2", spec.TaskEnded, &spec.Exit{Cause: spec.CauseCompleted})},
		Result: &spec.RunResult{
			Verdict: spec.VerdictFailed, ExitCode: 3, Message: "Subprocess worker-1 exited with exit code 3",
			FirstFailure: &spec.Failure{Task: "worker-1", Rank: 1, Host: "gpu-1", Exit: origin},
		},
	}
	p := NewRun(s, nil, noon.Add(time.Hour))
	assert.Equal(t, "failed", p.State)
	assert.Equal(t, Bad, p.Tone)
	assert.Equal(t, 3, p.ExitCode)
	require.NotNil(t, p.Cause)
	assert.Equal(t, "worker-1", p.Cause.Task)
	assert.Equal(t, "ValueError: no data", p.Cause.Words)
	for _, line := range p.Cause.Details {
		assert.NotContains(t, line, "ValueError")
	}
	var tones []Tone
	for _, task := range p.Tasks.All {
		tones = append(tones, task.Tone)
	}
	assert.Equal(t, []Tone{Muted, Culprit, Good}, tones)
	assert.InDelta(t, 0.5, p.Tasks.All[1].InUse().CPUs, 0.01)
	assert.Equal(t, int64(1<<20), p.Tasks.All[1].InUse().RSSBytes)
}

// The head of a hung run's page names the rank that the others wait for, and the stacks further
// down do not repeat it.
func TestARunThatHung(t *testing.T) {
	limit := spec.DurationOf(time.Minute)
	r := &spec.RunResult{
		Verdict: spec.VerdictTimedOut, ExitCode: 124, EndedBy: spec.EndedByTimeout, Limit: limit, Message: "One or more subprocesses timed out",
		Stacks: &stacktree.Findings{Total: 2, Sentence: "rank 1 is the only one that is not in barrier", Outliers: stacktree.RanksOf(1), Classes: []stacktree.Class{
			{Count: 1, Ranks: stacktree.RanksOf(0), Place: []stacktree.Frame{{Kind: stacktree.Python, Function: "barrier", File: "train.py", Line: 3}}},
			{Count: 1, Ranks: stacktree.RanksOf(1), Place: []stacktree.Frame{{Kind: stacktree.Python, Function: "load", File: "train.py", Line: 9}}},
		}},
	}
	p := NewRun(&starter.Status{RunID: "iris", Verdict: r.Verdict, Started: noon, Ended: noon.Add(time.Minute), Result: r}, nil, noon)
	assert.Equal(t, "rank 1 is the only one that is not in barrier", p.Cause.Sentence)
	assert.Equal(t, r.Message, p.Cause.Details[0])
	for _, line := range p.Cause.Details {
		assert.NotContains(t, line, "rank ")
	}
	assert.Empty(t, p.Stacks.Sentence)
	assert.Len(t, p.Stacks.Classes, 2)
	r.Stacks.Outliers = nil
	assert.Equal(t, r.Message, NewRun(&starter.Status{RunID: "iris", Verdict: r.Verdict, Result: r}, nil, noon).Cause.Sentence)
}

func TestThePageOfAnOpenRun(t *testing.T) {
	silent := task(1, "worker-1", spec.TaskRunning, nil)
	silent.Usage = &spec.LiveUsage{SilentSeconds: 90}
	ahead := task(0, "worker-0", spec.TaskRunning, nil)
	ahead.Progress, ahead.Steps = &spec.Progress{Current: 30, Total: 40}, &spec.StepTime{Seconds: 2, Steps: 30}
	behind := task(2, "worker-2", spec.TaskRunning, nil)
	behind.Progress, behind.Steps = &spec.Progress{Current: 10, Total: 40, Message: "epoch 1"}, &spec.StepTime{Seconds: 2, Steps: 10}
	s := &starter.Status{RunID: "iris", Open: true, State: spec.RunRunning, Started: noon, Tasks: []starter.TaskStatus{ahead, silent, behind}}
	s.Facts = outcome.Facts(s, noon.Add(time.Minute))
	p := NewRun(s, nil, noon.Add(time.Minute))
	assert.Equal(t, &Progress{Least: 0.25, Most: 0.75, Left: time.Minute, Message: "epoch 1"}, p.Progress)
	assert.Nil(t, p.Cause)
	require.Len(t, p.Notices, 1)
	assert.Equal(t, outcome.Warning, p.Notices[0].Severity)
	assert.Equal(t, []string{"worker-1"}, p.Notices[0].Items)
	assert.Equal(t, Warning, p.Tasks.All[1].Tone)
	assert.Equal(t, noon.Add(time.Minute), p.Timeline.To)
}

func TestStatesOfRuns(t *testing.T) {
	for _, c := range []struct {
		state string
		tone  Tone
		s     starter.Status
	}{
		{"pending", Waits, starter.Status{Open: true, State: spec.RunPlacing}},
		{"waiting", Waits, starter.Status{Open: true, State: spec.RunPlacing, Waiting: []outcome.Waiting{{After: "prepare"}}}},
		{"running", Active, starter.Status{Open: true, State: spec.RunRunning}},
		{"stopping", Warning, starter.Status{Open: true, State: spec.RunStopping}},
		{"no answer", Warning, starter.Status{Open: true, Unanswered: true}},
		{"succeeded", Good, starter.Status{Verdict: spec.VerdictSucceeded}},
		{"timed out", Bad, starter.Status{Verdict: spec.VerdictTimedOut}},
		{"terminated", Bad, starter.Status{Verdict: spec.VerdictFailed, Ending: "terminated"}},
	} {
		c.s.Facts = outcome.Facts(&c.s, noon)
		p := NewRun(&c.s, nil, noon)
		assert.Equal(t, c.state, p.State)
		assert.Equal(t, c.tone, p.Tone, c.state)
	}
}

// A metric of all tasks is one chart, and a value lasts until the task's next report.
func TestMetrics(t *testing.T) {
	report := func(seconds int, metrics map[string]float64) taskmetrics.Report {
		return taskmetrics.Report{At: noon.Add(time.Duration(seconds) * time.Second), Metrics: metrics}
	}
	assert.Empty(t, NewMetrics([]runrecord.MetricHistory{{}, {Reports: []taskmetrics.Report{report(1, map[string]float64{"loss": 1})}}}), "at one time")
	found := NewMetrics([]runrecord.MetricHistory{
		{Name: "worker-0", Reports: []taskmetrics.Report{report(0, map[string]float64{"loss": 2, "acc": 0}), report(60, map[string]float64{"loss": -1})}},
		{Name: "worker-1", Reports: []taskmetrics.Report{report(119, map[string]float64{"loss": 3})}},
	})
	require.Len(t, found, 2)
	assert.Equal(t, []string{"acc", "loss"}, []string{found[0].Name, found[1].Name})
	loss := found[1].Tasks[0]
	assert.Equal(t, []float64{2, 2, -1}, []float64{loss[0], loss[59], loss[60]})
	assert.True(t, math.IsNaN(loss[61]), "it is unknown whether the process still lived")
	assert.Equal(t, 3.0, found[1].Tasks[1][119])
	assert.Equal(t, "3", found[1].Median())
	svg := string(found[1].SVG(&Frame{}))
	assert.Contains(t, svg, ">-1</text>")
	assert.NotContains(t, svg, "NaN")
	assert.Equal(t, "0", found[0].Median())
	assert.NotContains(t, found[0].SVG(&Frame{}), "polygon", "one task has no range")
}
