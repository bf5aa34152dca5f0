package sweep

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// State is a trial's state, represented by its letter in a [Snapshot].
type State byte

// The values of [State].
const (
	Pending   State = 'p'
	Running   State = 'r'
	Succeeded State = 's'
	Failed    State = 'f'
	Cancelled State = 'c' // stopped on request
	Skipped   State = 'k' // never started
	// Lost occurs only in reports. The trial was lost with its host, and is restarted.
	Lost State = 'l'
)

// String returns the state as a word.
func (s State) String() string {
	switch s {
	case Pending:
		return "pending"
	case Running:
		return "running"
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	case Cancelled:
		return "cancelled"
	case Skipped:
		return "skipped"
	case Lost:
		return "lost"
	}
	return "unknown"
}

// StateOfResult returns an ended trial's state. A trial without a result has failed.
func StateOfResult(r *spec.RunResult) State {
	switch {
	case r == nil:
		return Failed
	case r.ErrorType == spec.ErrHostLost:
		return Lost
	}
	return StateOf(r.Verdict)
}

// StateOf returns a trial's state for verdict v.
func StateOf(v spec.Verdict) State {
	switch v {
	case spec.VerdictSucceeded:
		return Succeeded
	case spec.VerdictCancelled, spec.VerdictPreempted:
		return Cancelled
	}
	return Failed
}

// Machine decides which trials of a sweep run, and when.
type Machine struct {
	rules  Rules
	states []State
	counts map[State]int
	// next is the first trial that may be pending.
	next int
	// started maps running trials to their start times.
	started map[int]time.Time
	// took is the total duration of finished timed trials.
	took  time.Duration
	timed int
	// lost counts the hosts that each trial was lost with.
	lost map[int]int
	// waits reports whether trials must wait to start, and skipped whether none may start anymore.
	waits, skipped bool
	// cancelled reports whether the whole sweep was cancelled, and over whether it has ended.
	cancelled, over bool
}

// Event is implemented by the types below.
type Event interface{ step(*Machine) []Action }

// The events of a sweep.
type (
	// Wait is the first event in a sweep that waits for earlier runs. It is followed by Begin or
	// Skip.
	Wait struct{}
	// Begin starts the first trials of a new or continued sweep.
	Begin struct{ Now time.Time }
	// Skip reports that an earlier run did not end as required.
	Skip struct{}
	// Ended reports that a trial has ended.
	Ended struct {
		Trial int
		State State
		Now   time.Time
	}
	// Stop stops the matching trials. Those that are pending are skipped.
	Stop struct{ Match func(trial int) bool }
	// Retry puts failed, stopped and skipped trials back into the queue.
	Retry struct{ Now time.Time }
	// Cancel stops all trials.
	Cancel struct{}
)

// Action is implemented by the types below.
type Action interface{ action() }

// The actions of a sweep.
type (
	// Start starts a trial.
	Start struct{ Trial int }
	// Interrupt cancels a trial. Its end is still reported.
	Interrupt struct{ Trial int }
	// Finish completes the sweep.
	Finish struct{}
)

func (Start) action()     {}
func (Interrupt) action() {}
func (Finish) action()    {}

// New returns a sweep's machine for the given number of trials.
func New(trials int, rules Rules) *Machine {
	m := &Machine{rules: rules, states: make([]State, trials), counts: map[State]int{Pending: trials}, started: map[int]time.Time{}, lost: map[int]int{}}
	for i := range m.states {
		m.states[i] = Pending
	}
	return m
}

// Step applies an event and returns the actions to carry out.
func (m *Machine) Step(e Event) []Action {
	if m.over {
		return nil
	}
	return e.step(m)
}

func (e Wait) step(m *Machine) []Action {
	m.waits = true
	return nil
}

func (e Begin) step(m *Machine) []Action {
	m.waits = false
	return m.advance(nil, e.Now)
}

func (e Skip) step(m *Machine) []Action {
	m.waits, m.skipped = false, true
	m.skipPending()
	return m.finish(nil)
}

// skipPending skips all pending trials.
func (m *Machine) skipPending() {
	for trial, state := range m.states {
		if state == Pending {
			m.set(trial, Skipped)
		}
	}
}

func (e Ended) step(m *Machine) []Action {
	if e.Trial < 0 || e.Trial >= len(m.states) || m.states[e.Trial] != Running {
		return nil // already reported
	}
	if at, ok := m.started[e.Trial]; ok {
		if e.State != Cancelled { // trials that were not cancelled take longer
			m.took += e.Now.Sub(at)
			m.timed++
		}
		delete(m.started, e.Trial)
	}
	m.set(e.Trial, m.unlessLost(e.Trial, e.State))
	return m.advance(nil, e.Now)
}

// maxLost limits how many hosts a trial may be lost with, because it may be the cause.
const maxLost = 3

// unlessLost returns an ended trial's state. A trial that was lost with its host returns to
// pending.
func (m *Machine) unlessLost(trial int, state State) State {
	if state != Lost {
		return state
	}
	switch m.lost[trial]++; {
	case m.lost[trial] >= maxLost:
		return Failed
	case m.cancelled:
		return Skipped
	}
	m.next = min(m.next, trial)
	return Pending
}

// Matching returns the function for [Stop] that matches trials against a [path.Match] pattern.
func Matching(pattern string) func(trial int) bool {
	return func(trial int) bool {
		ok, err := path.Match(pattern, strconv.Itoa(trial))
		return ok && err == nil
	}
}

func (e Stop) step(m *Machine) []Action {
	var actions []Action
	for trial, state := range m.states {
		switch {
		case !e.Match(trial):
		case state == Pending:
			m.set(trial, Skipped)
		case state == Running:
			actions = append(actions, Interrupt{trial})
		}
	}
	return m.finish(actions)
}

func (e Retry) step(m *Machine) []Action {
	if m.cancelled {
		return nil
	}
	for trial, state := range m.states {
		if state == Failed || state == Cancelled || state == Skipped {
			m.set(trial, Pending)
		}
	}
	m.next = 0
	return m.advance(nil, e.Now)
}

func (e Cancel) step(m *Machine) []Action {
	m.cancelled = true
	return Stop{Match: func(int) bool { return true }}.step(m)
}

// advance appends to actions the start of as many trials as the rules allow.
func (m *Machine) advance(actions []Action, now time.Time) []Action {
	if m.exhausted() {
		m.skipPending()
	}
	for !m.waits && m.counts[Pending] > 0 && m.counts[Running] < m.rules.AtMost {
		trial := m.pop()
		m.set(trial, Running)
		m.started[trial] = now
		actions = append(actions, Start{trial})
	}
	return m.finish(actions)
}

// exhausted reports whether more trials have failed than the rules tolerate.
func (m *Machine) exhausted() bool {
	return m.rules.MaxFailures != nil && m.counts[Failed] > *m.rules.MaxFailures
}

// pop returns the first pending trial, which must exist.
func (m *Machine) pop() int {
	for m.states[m.next] != Pending {
		m.next++
	}
	return m.next
}

// finish adds [Finish] if nothing is left to do.
func (m *Machine) finish(actions []Action) []Action {
	if m.counts[Pending]+m.counts[Running] == 0 {
		m.over = true
		actions = append(actions, Finish{})
	}
	return actions
}

func (m *Machine) set(trial int, s State) {
	m.counts[m.states[trial]]--
	m.counts[s]++
	m.states[trial] = s
}

// State returns a trial's state.
func (m *Machine) State(trial int) State { return m.states[trial] }

// listed limits the lengths of the lists in a status.
const listed = 1000

// Status returns all trials' states.
func (m *Machine) Status(now time.Time) *spec.SweepStatus {
	return &spec.SweepStatus{
		Trials: len(m.states), Pending: m.counts[Pending], Running: m.counts[Running],
		Succeeded: m.counts[Succeeded], Failed: m.counts[Failed], Cancelled: m.counts[Cancelled], Skipped: m.counts[Skipped],
		RunningTrials: m.first(Running), FailedTrials: m.first(Failed),
		AtMost: m.rules.AtMost, MaxFailures: m.rules.MaxFailures,
		RemainingSeconds: int(m.remaining(now).Round(time.Second).Seconds()),
		States:           textOf(m.states),
	}
}

// first returns the first trials in a state.
func (m *Machine) first(s State) []int {
	var trials []int
	for trial, state := range m.states {
		if m.counts[s] == len(trials) || len(trials) == listed {
			break
		}
		if state == s {
			trials = append(trials, trial)
		}
	}
	return trials
}

// remaining estimates the time left. It adds up the average duration of a trial for each pending
// trial, and the rest of that duration for each running one, and divides the sum by the number of
// running trials. A trial's duration includes its wait for free hosts.
func (m *Machine) remaining(now time.Time) time.Duration {
	if m.timed == 0 || len(m.started) == 0 {
		return 0
	}
	each := m.took / time.Duration(m.timed)
	rest := time.Duration(m.counts[Pending]) * each
	//workflowcheck:ignore the order makes no difference
	for _, at := range m.started {
		rest += max(0, each-now.Sub(at))
	}
	return rest / time.Duration(len(m.started))
}

// Verdict returns a sweep's verdict. A trial that was stopped or skipped on request does not count
// as a failure, unless the whole sweep was cancelled or no trial has succeeded.
func (m *Machine) Verdict() spec.Verdict {
	switch {
	case m.counts[Failed] > 0:
		return spec.VerdictFailed
	case m.cancelled:
		return spec.VerdictCancelled
	case m.skipped:
		return spec.VerdictSkipped
	case m.counts[Succeeded] == 0:
		return spec.VerdictCancelled
	}
	return spec.VerdictSucceeded
}

// Snapshot is the state that a sweep passes to its next execution.
type Snapshot struct {
	// States is the run-length encoding of the trials' states. Each length is followed by the
	// state's letter.
	States string `json:"states"`
	// Started maps the running trials to their start times.
	Started map[int]time.Time `json:"started,omitempty"`
	Took    time.Duration     `json:"took,omitempty"`
	Timed   int               `json:"timed,omitempty"`
	// Lost counts the hosts that trials were lost with.
	Lost map[int]int `json:"lost,omitempty"`
}

// Snapshot returns an unfinished sweep's state.
func (m *Machine) Snapshot() Snapshot {
	return Snapshot{States: textOf(m.states), Started: m.started, Took: m.took, Timed: m.timed, Lost: m.lost}
}

// textOf returns the run-length encoding of states.
func textOf(states []State) string {
	var b strings.Builder
	for i := 0; i < len(states); {
		j := i
		for j < len(states) && states[j] == states[i] {
			j++
		}
		b.WriteString(strconv.Itoa(j - i))
		b.WriteByte(byte(states[i]))
		i = j
	}
	return b.String()
}

// Len returns the number of trials.
func (m *Machine) Len() int { return len(m.states) }

// Resume returns a sweep's machine with state s.
func Resume(s Snapshot, rules Rules) (*Machine, error) {
	m := New(0, rules)
	m.counts = map[State]int{}
	number := 0
	for _, c := range []byte(s.States) {
		if '0' <= c && c <= '9' {
			number = min(MaxTrials+1, number*10+int(c-'0'))
			continue
		}
		if State(c).String() == "unknown" || len(m.states)+number > MaxTrials {
			return nil, fmt.Errorf("%q does not describe the states of trials", s.States)
		}
		m.states = append(m.states, slices.Repeat([]State{State(c)}, number)...)
		m.counts[State(c)] += number
		number = 0
	}
	m.took, m.timed = s.Took, s.Timed
	if s.Started != nil {
		m.started = s.Started
	}
	if s.Lost != nil {
		m.lost = s.Lost
	}
	return m, nil
}

// Again returns an ended sweep's state with its unsuccessful trials queued again, and their number.
// states is as in [Snapshot].
func Again(states string) (Snapshot, int, error) {
	m, err := Resume(Snapshot{States: states}, Rules{})
	if err != nil {
		return Snapshot{}, 0, err
	}
	for trial, state := range m.states {
		if state != Succeeded {
			m.set(trial, Pending)
		}
	}
	return m.Snapshot(), m.counts[Pending], nil
}
