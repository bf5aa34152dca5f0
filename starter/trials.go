package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// Trial is a trial of a sweep. Its run has the ID SWEEP.TRIAL.
type Trial struct {
	Trial int    `json:"trial"`
	RunID string `json:"run_id"`
	// ExecutionID is empty until its run has started.
	ExecutionID string `json:"-"`
	// State is pending, running, succeeded, failed, cancelled or skipped.
	State string `json:"state"`
	// Parameters has the values by name.
	Parameters map[string]string `json:"parameters"`
	// ExitCode is the run's exit code, once it is finished.
	ExitCode *int       `json:"exit_code,omitempty"`
	Cause    spec.Cause `json:"cause,omitempty"`
	Started  time.Time  `json:"started,omitzero"`
	// Seconds is the time from its start, with its wait for room, to its end or until now.
	Seconds float64 `json:"seconds,omitempty"`
	// Silent are the trial's hosts that have been silent for a while.
	Silent []outcome.SilentHost `json:"silent,omitempty"`
	// Error is the first line of a failed trial's error.
	Error string `json:"error,omitempty"`
	// Progress is the last progress of the first task that reports some.
	Progress *spec.Progress `json:"progress,omitempty"`
	// Value is a successful trial's first returned value, by rank.
	Value json.RawMessage `json:"value,omitempty"`
	// hasResult reports whether Error, Progress and Value are those of its end.
	hasResult bool
}

// Number returns the number that sorts the trial.
func (t *Trial) Number(by sweep.Order) (n float64, ok bool) { return by.Of(t.Value, t.metrics()) }

// BestTrials returns the indices, best first, of trials with a number that have not failed.
func BestTrials(trials []Trial, by sweep.Order) []int {
	return by.Best(len(trials), func(i int) (float64, bool) {
		n, ok := trials[i].Number(by)
		return n, ok && trials[i].State != sweep.Failed.String()
	})
}

// Keys returns the keys of the trial's numbers; see [sweep.Keys].
func (t *Trial) Keys() []string { return sweep.Keys(t.Value, t.metrics()) }

func (t *Trial) metrics() map[string]float64 {
	if t.Progress == nil {
		return nil
	}
	return t.Progress.Metrics
}

// Trials returns the names of a sweep's parameters, and all its trials. The server's list lags
// slightly. See [Run.ReadTrials] for what it omits.
func (r *Run) Trials(ctx context.Context, s *Status) (names []string, trials []Trial, err error) {
	of, err := r.SweepSpec(ctx)
	if err != nil {
		return nil, nil, err
	}
	grid, err := of.Grid.Parse()
	if err != nil {
		return nil, nil, fmt.Errorf("the trials of sweep %s: %w", r.ID, err)
	}
	trials = make([]Trial, grid.Len())
	known, err := states(s)
	if err != nil {
		return nil, nil, err
	}
	for i := range trials {
		notStarted := sweep.Skipped
		if s.Open && (known == nil || i >= known.Len() || known.State(i) != sweep.Skipped) {
			notStarted = sweep.Pending
		}
		trials[i] = Trial{Trial: i, RunID: spec.TrialID(r.ID, i), State: notStarted.String(), Parameters: map[string]string{}}
		for _, v := range grid.Values(i) {
			trials[i].Parameters[v.Name] = v.Value
		}
	}
	runs, err := List(ctx, r.client, ListOptions{ID: r.ID + ".*", Trials: true, Limit: math.MaxInt32 / 2})
	if err != nil {
		return nil, nil, err
	}
	for _, run := range slices.Backward(runs) { // so that the latest run of a trial wins
		_, trial, ok := spec.SplitTrialID(run.RunID)
		if !ok || run.TrialOf != r.ID || trial >= len(trials) || run.Started.Before(s.Started) { // an earlier sweep with that ID
			continue
		}
		trials[trial].fill(run)
	}
	return grid.Names(), trials, nil
}

// maxDescribed limits how many running trials are described, longest-running first.
const maxDescribed = 200

// DescribeTrials adds the progress and the silent hosts of running trials. It omits what is
// currently unknown.
func (r *Run) DescribeTrials(ctx context.Context, trials []Trial) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatsTake)
	defer cancel()
	var running []*Trial
	for i := range trials {
		if t := &trials[i]; t.State == sweep.Running.String() && t.ExecutionID != "" {
			running = append(running, t)
		}
	}
	slices.SortFunc(running, func(a, b *Trial) int { return a.Started.Compare(b.Started) })
	background.Each(8, running[:min(len(running), maxDescribed)], func(_ int, t *Trial) {
		d, err := Get(r.client, t.RunID, t.ExecutionID).describe(ctx)
		if err != nil {
			return
		}
		hosts := map[string]string{}
		for _, a := range d.GetPendingActivities() {
			var beat spec.Heartbeat
			if decode(a.GetHeartbeatDetails(), &beat) {
				hosts[a.GetActivityId()] = beat.Host
				t.Progress = cmp.Or(t.Progress, beat.Progress)
			}
		}
		t.Silent = silentHosts(time.Now(), 0, d.GetPendingActivities(), func(id string) string { return hosts[id] })
	})
}

// ReadTrials adds the errors, the last progress and the values of finished trials, with one request
// each, until ctx is done. It copies the results that are already in known, an earlier list. It
// returns the number of missing results.
func (r *Run) ReadTrials(ctx context.Context, trials, known []Trial) (missing int) {
	background.Each(16, trials, func(i int, _ Trial) {
		t := &trials[i]
		switch {
		case i < len(known) && known[i].hasResult && known[i].ExecutionID == t.ExecutionID:
			t.Error, t.Progress, t.Value, t.hasResult = known[i].Error, known[i].Progress, known[i].Value, true
		case t.ExitCode != nil && ctx.Err() == nil:
			result, err := Get(r.client, t.RunID, t.ExecutionID).Wait(ctx)
			if t.hasResult = result != nil || IsError[*TerminatedError](err); result != nil {
				t.addResult(result)
			}
		}
	})
	for _, t := range trials {
		if t.ExitCode != nil && !t.hasResult {
			missing++
		}
	}
	return missing
}

func (t *Trial) addResult(r *spec.RunResult) {
	if t.State == sweep.Failed.String() {
		t.Error, _, _ = strings.Cut(r.Message, "\n")
		if f := cmp.Or(r.FirstError, r.FirstFailure); f != nil && f.Printed != nil {
			t.Error = f.Printed.String()
		}
	}
	for _, task := range r.Tasks {
		if e := task.Exit; e != nil && e.LastStep != nil && t.Progress == nil {
			t.Progress = &spec.Progress{Current: *e.LastStep, Metrics: e.Metrics}
		}
		if t.State == sweep.Succeeded.String() && t.Value == nil && len(task.Value) > 0 {
			t.Value = task.Value
		}
	}
}

// states returns a sweep's trial states, or nil if they are unknown.
func states(s *Status) (*sweep.Machine, error) {
	if s.Sweep == nil {
		return nil, nil
	}
	return sweep.Resume(sweep.Snapshot{States: s.Sweep.States}, sweep.Rules{})
}

func (t *Trial) fill(run Summary) {
	t.ExecutionID, t.Started, t.Cause, t.ExitCode = run.ExecutionID, run.Started, run.Cause, nil // it may have run before
	if run.Open {
		t.State, t.Seconds = sweep.Running.String(), seconds(time.Since(run.Started))
		return
	}
	t.State, t.Seconds = sweep.StateOf(run.Verdict).String(), seconds(run.Ended.Sub(run.Started))
	t.ExitCode = &run.ExitCode
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
