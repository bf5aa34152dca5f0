package sweep

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// MaxBatch bounds the trials of a batch, which are the tasks of one run.
	MaxBatch = 200
	// maxBatchBytes bounds the commands and variables of a batch. A start of several batches
	// at a time must fit into one message to the server.
	maxBatchBytes = 96 << 10
	// maxWaiting bounds the trials in all batches: each has an activity on a host.
	maxWaiting = 2000
	// batchTakes is the time that a batch should take. Each batch costs the server as much as
	// a trial of its own, and the sweep learns of the ends when the batch has ended.
	batchTakes = 4 * time.Second
)

// Quick reports whether trials of a run can be batched: each is one process on any host, without
// restarts or anything else that a run of its own is needed for. The fields below are all that a
// batch handles.
func Quick(s *spec.RunSpec) bool {
	if len(s.Tasks) != 1 || s.Tasks[0].Size() != 1 {
		return false
	}
	g := s.Tasks[0]
	g.Type, g.Count, g.Command, g.Args, g.Dir, g.Env, g.Stop, g.Logs = "", nil, nil, nil, "", nil, spec.Stop{}, spec.GroupLogs{}
	rest := *s
	rest.Tasks = nil
	rest.Name, rest.Command, rest.Dir, rest.Env, rest.UnsetEnv, rest.RecordSource = "", nil, "", nil, nil, nil
	rest.Stop, rest.PythonStacks, rest.Priority, rest.EnvProfiles, rest.Ship = spec.Stop{}, nil, nil, nil, spec.Ship{}
	if rest.Logs.Quota == "" {
		rest.Logs = spec.Logs{}
	}
	return reflect.ValueOf(g).IsZero() && reflect.ValueOf(rest).IsZero()
}

// BatchOf returns the run of consecutive trials. t must be the trials of s.Grid.
func (s *Spec) BatchOf(t *Trials, sweep string, first, count int, maxFailures *int) (*spec.RunSpec, error) {
	out := *s.Run
	out.OnFailure = spec.OnFailureContinue
	out.Batch = &spec.Batch{Sweep: sweep, First: first, MaxFailures: maxFailures}
	g := s.Run.Tasks[0]
	g.Count, g.Overrides = &count, make(map[string]spec.Override, count)
	out.Tasks = []spec.TaskGroup{g}
	base, _ := out.Task(spec.TaskName(g.Type, 0))
	for i := range count {
		one, err := s.Trial(t, sweep, first+i)
		if err != nil {
			return nil, err
		}
		task, _ := one.Task(spec.TaskName(g.Type, 0))
		o := spec.Override{Env: spec.Env{}}
		if !sameWords(task.Command, base.Command) {
			o.Command, o.Args = task.Command, []string{}
		}
		if task.Dir != base.Dir {
			o.Dir = task.Dir
		}
		//workflowcheck:ignore the order of entries makes no difference
		for name, v := range task.Env {
			if base.Env[name] != v {
				o.Env[name] = v
			}
		}
		g.Overrides[strconv.Itoa(i)] = o
	}
	return &out, nil
}

// sizeInBatch returns about the number of bytes that a trial adds to a batch.
func sizeInBatch(s *spec.RunSpec) int {
	size := 50
	for _, t := range s.TaskList() {
		size += len(t.Dir) + len(strings.Join(t.Command, `","`))
		//workflowcheck:ignore the order makes no difference
		for name, v := range t.Env {
			size += len(name) + len(v.Value) + 20
		}
	}
	return size
}

func sameWords(a, b []string) bool { return reflect.DeepEqual(a, b) }

// StatesOf returns the state of a trial that has ended, or those of a batch of trials. Without a
// result all have failed. A trial that did not get its turn is pending.
func StatesOf(result *spec.RunResult, count int) []State {
	if count <= 1 {
		return []State{stateOf(result)}
	}
	states := make([]State, count)
	for i := range states {
		states[i] = Failed
		if result != nil && result.Verdict == spec.VerdictCancelled {
			states[i] = Skipped
		}
	}
	if result == nil {
		return states
	}
	for _, t := range result.Tasks {
		if t.Index >= 0 && t.Index < count && t.Exit != nil {
			states[t.Index] = StateOfExit(*t.Exit)
		}
	}
	return states
}

// Ran is the time that processes of trials have taken, one after the other.
type Ran struct {
	Took      time.Duration
	Processes int
}

// RanIn returns the time of the processes of a trial, or of a batch, that have ended by themselves.
func RanIn(result *spec.RunResult) *Ran {
	r := &Ran{}
	if result == nil {
		return r
	}
	for _, t := range result.Tasks {
		e := t.Exit
		if e == nil || e.Cause != spec.CauseCompleted && !e.Cause.ByItself() || e.Started.IsZero() || e.Ended.Before(e.Started) {
			continue
		}
		r.Took += e.Ended.Sub(e.Started)
		r.Processes++
	}
	return r
}

// stateOf returns the state of a trial that is a run.
func stateOf(result *spec.RunResult) State {
	switch {
	case result == nil:
		return Failed
	case result.Verdict == spec.VerdictSucceeded:
		return Succeeded
	case result.Verdict == spec.VerdictCancelled, result.Verdict == spec.VerdictPreempted:
		return Cancelled
	case result.ErrorType == spec.ErrHostLost:
		return Lost
	}
	return Failed
}

// StateOfExit returns the state of a trial of a batch whose process has ended.
func StateOfExit(e spec.Exit) State {
	switch e.Cause {
	case spec.CauseCompleted:
		return Succeeded
	case spec.CauseOperator, spec.CauseCollateral:
		if e.Started.IsZero() {
			return Skipped // before its turn
		}
		return Cancelled
	case spec.CausePreempted:
		return Pending
	case spec.CauseHostLost:
		return Lost
	}
	return Failed
}

// batchFrom returns the number of pending trials to start as one run, from the first of them.
func (m *Machine) batchFrom(first int) int {
	most := min(m.rules.Batch, maxWaiting/m.rules.AtMost)
	each := batchTakes // the first trials show how long one takes
	switch {
	case m.measured > 0:
		each = m.ran / time.Duration(m.measured)
	case m.timed > 0:
		each = m.took / time.Duration(m.timed)
	}
	most = min(most, int(batchTakes/max(each, time.Millisecond)))
	// Toward the end batches are smaller, so that all end at about the same time.
	most = min(most, max(m.counts[Pending]/(2*m.rules.AtMost), most/8))
	n := 1
	for n < most && first+n < len(m.states) && m.states[first+n] == Pending {
		n++
	}
	return n
}

// MaxFailures returns the number of failed trials that a batch which starts now may tolerate, so
// that all batches together start no trial once the rules tolerate no more. It is nil without a
// bound.
func (m *Machine) MaxFailures() *int {
	if m.rules.MaxFailures == nil {
		return nil
	}
	left := max(0, *m.rules.MaxFailures-m.counts[Failed]) / m.rules.AtMost
	return &left
}
