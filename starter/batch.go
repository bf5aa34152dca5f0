package starter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/parallel"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// locate finds the batch of a trial. Afterwards the requests of the chain go to the run of the
// batch, in which the trial is a task. For other runs it changes nothing.
func (c *chain) locate(ctx context.Context) error {
	id, trial, ok := spec.SplitTrialID(c.id)
	if !ok || c.first != "" || c.task != "" {
		return nil
	}
	of, err := Get(c.client, id, "").SweepSpec(ctx)
	if err != nil || of.Batch == 0 {
		return ctx.Err() // it is another run, or a trial with a run of its own
	}
	runs, err := latestMatching(ctx, c.client, id+".*")
	if err != nil {
		return err
	}
	for _, run := range runs { // the latest first
		_, first, count, ok := spec.SplitTrialsID(run.RunID)
		if !ok || run.trialOf != id || trial < first || trial >= first+count {
			continue
		}
		if count == 1 {
			return nil
		}
		s, err := Get(c.client, run.RunID, run.ExecutionID).Status(ctx)
		if err != nil {
			return err
		}
		t := taskOfTrial(s, trial-first)
		if t == nil || t.Exit != nil && sweep.StateOfExit(*t.Exit) == sweep.Pending {
			continue // it did not get its turn
		}
		trials, err := of.Grid.Parse()
		if err != nil {
			return err
		}
		own, err := of.Trial(trials, id, trial)
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.id, c.first, c.task, c.trial = run.RunID, run.ExecutionID, t.Name, own
		return nil
	}
	return nil
}

func taskOfTrial(s *Status, index int) *TaskStatus {
	for i := range s.Tasks {
		if s.Tasks[i].Index == index {
			return &s.Tasks[i]
		}
	}
	return nil
}

// InBatch returns the run in which a trial is one of several tasks, and the name of that task. ok is
// false for any other run.
func (r *Run) InBatch(ctx context.Context) (batch *Run, task string, ok bool) {
	if r.locate(ctx) != nil || r.task == "" {
		return nil, "", false
	}
	return Get(r.client, r.id, r.first), r.task, true
}

// waitInBatch is [Run.WaitNotify] for a trial of a batch. It asks now and then, since the batch may
// last longer than the trial.
func (r *Run) waitInBatch(ctx context.Context, notify func(error)) (*spec.RunResult, error) {
	for away := false; ; {
		s, err := r.Status(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !servererror.IsTransient(err):
			return nil, err
		case (err != nil) != away:
			away = err != nil
			notify(err)
		case err == nil && s.Result != nil && s.Verdict == spec.VerdictSucceeded:
			return s.Result, nil
		case err == nil && s.Result != nil:
			return s.Result, &Error{RunID: r.ID, Result: s.Result}
		case err == nil && !s.Open:
			return nil, r.terminated(ctx)
		}
		if err := retry.Sleep(ctx, lookEvery); err != nil {
			return nil, err
		}
	}
}

// BatchError reports that something needs a run, and a trial shares its run with others.
type BatchError struct{ Trial, Batch string }

func (e *BatchError) Error() string {
	return fmt.Sprintf("the short trial %s is a task of the run %s. Name that run, or the sweep", e.Trial, e.Batch)
}

// resultOfTrial returns the result that a trial of a batch would have as a run of its own.
func resultOfTrial(t spec.TaskResult) *spec.RunResult {
	s := (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: t.Type}}}).WithDefaults()
	m := lifecycle.New(s, s.TaskList())
	m.Step(lifecycle.Begin{})
	name := spec.TaskName(t.Type, 0)
	end := lifecycle.Released{Hosts: map[string]string{name: t.Host}}
	if t.Exit != nil {
		end.Exits = map[string][]spec.Exit{name: {*t.Exit}}
	}
	if len(t.Value) > 0 {
		end.Values = map[string][]byte{name: t.Value}
	}
	actions := m.Step(lifecycle.TaskEnded{Task: name, Exit: t.Exit, Host: t.Host})
	for _, a := range append(actions, m.Step(end)...) {
		if f, ok := a.(lifecycle.Finish); ok {
			f.Result.Message = outcome.Sentence(&f.Result)
			return &f.Result
		}
	}
	return nil
}

// narrow leaves only a trial of a batch in its status.
func (s *Status) narrow(task string) {
	var one *TaskStatus
	for i := range s.Tasks {
		if s.Tasks[i].Name == task {
			one = &s.Tasks[i]
		}
	}
	if one == nil {
		s.Tasks = nil
		return
	}
	result := spec.TaskResult{Name: one.Name, Type: one.Type, Index: one.Index, Rank: one.Rank, Host: one.Host, Exit: one.Exit}
	if s.Result != nil {
		for _, t := range s.Result.Tasks {
			if t.Name == task {
				result = t
			}
		}
	}
	s.Result, s.Verdict, s.Message = nil, "", ""
	if s.Open && one.Exit == nil && one.PID == 0 {
		one.State = spec.TaskPending
	}
	if one.Exit != nil {
		s.Open, s.State, s.Started, s.Ended = false, spec.RunEnded, one.Exit.Started, one.Exit.Ended
		if s.Started.IsZero() { // it was stopped before its turn
			s.Started = s.Ended
		}
	}
	if !s.Open {
		s.Result = resultOfTrial(result)
		if s.Result != nil {
			s.Verdict = s.Result.Verdict
		}
	}
	one.Name, one.Index, one.Rank = spec.TaskName(one.Type, 0), 0, 0
	s.Tasks = []TaskStatus{*one}
}

// fillBatches adds what is known of the trials of batches.
func fillBatches(ctx context.Context, r *Run, trials []Trial, batches map[int]Summary) {
	byRun := map[string][]int{}
	for trial, run := range batches {
		byRun[run.RunID+" "+run.ExecutionID] = append(byRun[run.RunID+" "+run.ExecutionID], trial)
	}
	parallel.Each(16, slices.Collect(maps.Values(byRun)), func(_ int, of []int) {
		run := batches[of[0]]
		_, first, _, _ := spec.SplitTrialsID(run.RunID)
		s, err := Get(r.client, run.RunID, run.ExecutionID).Status(ctx)
		if err != nil {
			return // their states are known from the sweep, and nothing else
		}
		values := map[int]spec.TaskResult{}
		if s.Result != nil {
			for _, t := range s.Result.Tasks {
				values[t.Index] = t
			}
		}
		for _, trial := range of {
			if t := taskOfTrial(s, trial-first); t != nil {
				trials[trial].fillTask(*t, values[trial-first])
			}
		}
	})
}

// fillTask adds what is known of a trial that is a task of a batch.
func (t *Trial) fillTask(s TaskStatus, r spec.TaskResult) {
	switch {
	case s.Exit != nil:
		state := sweep.StateOfExit(*s.Exit)
		if state == sweep.Pending {
			return // another batch has it
		}
		t.State, t.Started = state.String(), s.Exit.Started
		if state == sweep.Skipped {
			return
		}
		r.Type, r.Exit = s.Type, s.Exit
		if result := resultOfTrial(r); result != nil {
			t.Cause, t.ExitCode = result.Cause(), &result.ExitCode
		}
		t.Seconds, t.Value = seconds(s.Exit.Ended.Sub(s.Exit.Started)), r.Value
	case s.PID != 0:
		t.State, t.Started = sweep.Running.String(), s.Started
		t.Seconds = seconds(time.Since(s.Started))
	}
}
