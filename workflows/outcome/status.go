package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Status combines the information from the run, the server and the hosts' last reports.
type Status struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Name        string `json:"name,omitempty"`
	Owner       string `json:"owner,omitempty"`
	// Command is the first tasks' command line, possibly truncated, and Dir their working
	// directory.
	Command string `json:"command,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Queue   string `json:"queue"`
	// Torchrun reports whether its starter exits like torchrun.
	Torchrun bool `json:"-"`
	// Open reports whether the run is still open.
	Open       bool          `json:"open"`
	State      spec.RunState `json:"state"`
	Generation int           `json:"generation"`
	Started    time.Time     `json:"started,omitzero"`
	Ended      time.Time     `json:"ended,omitzero"`
	// Unanswered reports whether no worker currently answers for the run's workflow. Of the
	// tasks, only those running are then known; of a run that ended without a result, none.
	Unanswered bool `json:"unanswered,omitempty"`
	// Unattended reports whether it is unanswered because no worker executes the workflow.
	// Otherwise a worker polled less than half a minute ago, but may be frozen or cut off.
	Unattended bool `json:"unattended,omitempty"`
	// Paused reports whether it is unanswered because its workflow is paused in Temporal.
	Paused bool         `json:"paused,omitempty"`
	Tasks  []TaskStatus `json:"tasks"`
	// GroupRestarts are the last restarts of the whole group, oldest first.
	GroupRestarts []spec.GroupRestart `json:"group_restarts,omitempty"`
	// Waiting is what the run is waiting for.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Stopping is set while the tasks are stopping together.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Preemptions is how often the run returned to the queue after a notice. PendingSince is
	// when it last returned, if it is pending again.
	Preemptions  int       `json:"preemptions,omitempty"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// Notice is set while the tasks have notice of a stop.
	Notice *spec.StopNotice `json:"notice,omitempty"`
	// Verdict is the verdict of an ended run, even without a result; Ending is then "terminated".
	Verdict spec.Verdict `json:"verdict,omitempty"`
	Ending  string       `json:"ending,omitempty"`
	// Silent are the hosts that have not been heard from for a while.
	Silent []SilentHost `json:"silent,omitempty"`
	// Slow are the tasks and hosts that take longer per step than others, slowest first.
	Slow []spec.Slow `json:"slow,omitempty"`
	// TooFewSteps reports whether tasks of an open run cannot be compared yet because too few
	// steps are known.
	TooFewSteps bool `json:"too_few_steps,omitempty"`
	// Stacks are an open run's last captured stacks.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// Elastic is set if the number of hosts may change and the run is open.
	Elastic *spec.ElasticStatus `json:"elastic,omitempty"`
	// OnDisconnect is what hosts do when they lose contact with the server.
	OnDisconnect spec.OnDisconnect `json:"on_disconnect,omitempty"`
	// GivenUpAfter is how long after a host's last heartbeat an open run gives the host up, or 0
	// for never.
	GivenUpAfter spec.Duration `json:"given_up_after,omitempty"`
	// SilenceIgnoresCPU reports whether a task of an open run can be silent although it uses CPU
	// time.
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// Archive is the directory shipped by an open run.
	Archive *spec.Archive `json:"archive,omitempty"`
	// Services are an open run's host services.
	Services []spec.HostService `json:"-"`
	// Sweep is set for a sweep, which has trials instead of tasks.
	Sweep *spec.SweepStatus `json:"sweep,omitempty"`
	// TrialOf is a trial's sweep.
	TrialOf string `json:"-"`
	// Result is set once the run has ended, if it left a result.
	Result *spec.RunResult `json:"result,omitempty"`
	// Message is the reason why an ended run did not leave a result.
	Message string `json:"message,omitempty"`
	// Facts is what is true about the run, most urgent first.
	Facts []Fact `json:"facts"`
}

// TaskStatus is a task's status.
type TaskStatus struct {
	spec.TaskStatus
	PID      int       `json:"pid,omitempty"`
	Restarts int       `json:"restarts,omitempty"`
	Started  time.Time `json:"process_started,omitzero"`
	LogDir   string    `json:"log_dir,omitempty"`
	// Progress is the progress reported by the task.
	Progress *spec.Progress `json:"progress,omitempty"`
	// Steps are the running process's step times, or nil if it did not report steps. When the
	// process exits, they move to Exit.
	Steps *spec.StepTime `json:"steps,omitempty"`
	// Usage is the running process's resource usage, or nil if unknown. When the process exits, it
	// moves to Exit.
	Usage *spec.LiveUsage `json:"usage,omitempty"`
	// LastOutput is when the running process last wrote output, by its host's clock. It is zero
	// if there is no output or the time is unknown.
	LastOutput time.Time `json:"last_output,omitzero"`
	// Unsupervised reports whether the host's supervisor does not answer.
	Unsupervised bool `json:"unsupervised,omitempty"`
	// NextStart is when the task restarts, if it is waiting for a restart.
	NextStart time.Time `json:"next_start,omitzero"`
	// LastFailure is the reason for the restart.
	LastFailure string `json:"last_failure,omitempty"`
	// LastRestart is the reason for the last restart of an open run's task, even after it.
	LastRestart string `json:"-"`
}

// Silence returns how long the task has not shown signs of work, or 0 if it does.
func (t TaskStatus) Silence() time.Duration {
	if t.Usage == nil {
		return 0
	}
	return time.Duration(t.Usage.SilentSeconds) * time.Second
}

// Waiting is a place or an event that a run is waiting for.
type Waiting struct {
	// After is the earlier run that must end. The other fields are then empty.
	After string `json:"after,omitempty"`
	// Host is the host in the spec, or "" for any.
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the requested host workers.
	Queue string `json:"queue"`
	// Refusal is a host's last refusal, or what the fleet is waiting for, or "" before an answer.
	Refusal string `json:"refusal,omitempty"`
	// Fetching is a host's progress at fetching the run's archive.
	Fetching *spec.Fetching `json:"fetching,omitempty"`
	// Position is the position in the fleet's queue, from 1, or 0 if the run is not queued.
	Position int `json:"position,omitempty"`
	// Until is when the run gives up.
	Until time.Time `json:"until,omitzero"`
}

// SilentHost is a host that has not been heard from for a while.
type SilentHost struct {
	Host string `json:"host"`
	// Heard is when the server received the last heartbeat.
	Heard time.Time `json:"heard"`
	// GivenUp is when the run gives the host up, or zero for never.
	GivenUp time.Time `json:"given_up,omitzero"`
}

// The states of an open run that lists, pages and the status use in addition to the run's own
// states.
const (
	StatePending = "pending" // for free slots
	StateWaiting = "waiting" // for earlier runs to end (after)
	StateRunning = "running"
	StatePaused  = "paused" // in Temporal
)

// LastOutput returns when a running process of the run last wrote output, or nil if there is no
// output or if the time is unknown.
func (s *Status) LastOutput() *time.Time {
	var last time.Time
	for _, t := range s.Tasks {
		if t.LastOutput.After(last) {
			last = t.LastOutput
		}
	}
	if last.IsZero() {
		return nil
	}
	return &last
}

// remedy returns, as the end of a sentence, what a user can do if the run does not answer.
func (s *Status) remedy() string {
	switch {
	case s.Paused:
		return ""
	case spec.IsPrivateQueue(s.Queue), spec.IsAgentsQueue(s.Queue):
		return fmt.Sprintf("; if the command that ran it is gone, `clusterrun stop %s` ends it", s.RunID)
	}
	return fmt.Sprintf("; a `clusterrun worker` for the queue %s would execute it, and `clusterrun stop %s` ends it", s.Queue, s.RunID)
}

// Absence returns why a run does not answer, or "".
func (s *Status) Absence() string {
	switch {
	case s.Paused:
		return "paused in Temporal: nothing happens until it is unpaused there"
	case s.Unattended:
		return "no host worker executes it"
	case s.Unanswered:
		return "its host worker does not answer"
	}
	return ""
}

// Terminated is the value of Ending if a run was terminated on the server.
const Terminated = "terminated"

// IsTerminated reports whether the run was terminated on the server, without stopping its tasks.
func (s *Status) IsTerminated() bool { return s.Ending == Terminated }

// Word returns the run's state in a word.
func (s *Status) Word() string {
	switch {
	case !s.Open:
		return cmp.Or(s.Ending, string(s.Verdict), "ended")
	case s.Unanswered:
		return "open"
	case s.State != spec.RunPlacing:
		return string(s.State)
	case slices.ContainsFunc(s.Waiting, func(w Waiting) bool { return w.After != "" }):
		return StateWaiting
	}
	return StatePending
}
