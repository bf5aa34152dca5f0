package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/parallel"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// Trial is a trial of a sweep. Its run has the ID SWEEP.TRIAL.
type Trial struct {
	Trial int    `json:"trial"`
	RunID string `json:"run_id"`
	// State is pending, running, succeeded, failed, cancelled or skipped.
	State string `json:"state"`
	// Parameters has the values by name.
	Parameters map[string]string `json:"parameters"`
	// ExitCode is the exit code of the run, once it has ended.
	ExitCode *int       `json:"exit_code,omitempty"`
	Cause    spec.Cause `json:"cause,omitempty"`
	Started  time.Time  `json:"started,omitzero"`
	// Seconds is the time from its start, with its wait for room, to its end or until now.
	Seconds float64 `json:"seconds,omitempty"`
	// Silent are hosts of the trial that have not sent anything for a while.
	Silent []outcome.SilentHost `json:"silent,omitempty"`
	// Value is the first value that its tasks have returned, by rank.
	Value json.RawMessage `json:"value,omitempty"`
}

// Trials returns the names of a sweep's parameters, and all its trials. If values is set, it
// also reads the results of successful trials, with one request each. The server's list lags
// slightly.
func (r *Run) Trials(ctx context.Context, s *Status, values bool) (names []string, trials []Trial, err error) {
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
	runs, err := latestMatching(ctx, r.client, r.ID+".*")
	if err != nil {
		return nil, nil, err
	}
	verdicts(ctx, r.client, runs)
	latest := map[int]Summary{}
	for _, run := range slices.Backward(runs) { // so that the latest run of a trial wins
		_, trial, ok := spec.SplitTrialID(run.RunID)
		if !ok || run.TrialOf != r.ID || trial >= len(trials) || run.Started.Before(s.Started) { // an earlier sweep with that ID
			continue
		}
		latest[trial] = run
		trials[trial].fill(run)
	}
	findSilent(ctx, r, trials, latest)
	if values {
		readValues(ctx, r, trials, latest)
	}
	return grid.Names(), trials, nil
}

// maxLooked limits how many trials are checked for silent hosts. The longest-running ones are.
const maxLooked = 16

// findSilent finds silent hosts of the oldest running trials. It omits facts that are currently
// unknown.
func findSilent(ctx context.Context, r *Run, trials []Trial, latest map[int]Summary) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatsTake)
	defer cancel()
	var oldest []int
	for trial, run := range latest {
		if run.Open && time.Since(run.Started) > silentAfter {
			oldest = append(oldest, trial)
		}
	}
	slices.SortFunc(oldest, func(a, b int) int { return latest[a].Started.Compare(latest[b].Started) })
	parallel.Each(8, oldest[:min(len(oldest), maxLooked)], func(_, trial int) {
		run := latest[trial]
		d, err := Get(r.client, run.RunID, run.ExecutionID).describe(ctx)
		if err != nil {
			return
		}
		trials[trial].Silent = silentHosts(time.Now(), 0, d.GetPendingActivities(), func(id string) string {
			for _, a := range d.GetPendingActivities() {
				var beat spec.Heartbeat
				if a.GetActivityId() == id && decode(a.GetHeartbeatDetails(), &beat) {
					return beat.Host
				}
			}
			return ""
		})
	})
}

// states returns a sweep's trial states, or nil if they are unknown.
func states(s *Status) (*sweep.Machine, error) {
	if s.Sweep == nil {
		return nil, nil
	}
	return sweep.Resume(sweep.Snapshot{States: s.Sweep.States}, sweep.Rules{})
}

func (t *Trial) fill(run Summary) {
	t.Started, t.Cause, t.ExitCode = run.Started, run.Cause, nil // it may have run before
	if run.Open {
		t.State, t.Seconds = sweep.Running.String(), seconds(time.Since(run.Started))
		return
	}
	t.State, t.Seconds = sweep.StateOf(run.Verdict).String(), seconds(run.Ended.Sub(run.Started))
	t.ExitCode = &run.ExitCode
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// readValues reads the values that trials returned.
func readValues(ctx context.Context, r *Run, trials []Trial, runs map[int]Summary) {
	parallel.Each(16, trials, func(i int, t Trial) {
		if t.State != sweep.Succeeded.String() {
			return
		}
		result, err := Get(r.client, t.RunID, runs[t.Trial].ExecutionID).Wait(ctx)
		if err != nil {
			return // the value stays unknown
		}
		for _, task := range result.Tasks {
			if len(task.Value) > 0 {
				trials[i].Value = task.Value
				return
			}
		}
	})
}
