package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Status joins the facts from the run, the server, and the last reports of the hosts.
type Status struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Name        string `json:"name,omitempty"`
	Owner       string `json:"owner,omitempty"`
	// Command is the command line, or the start of a long one, of the first tasks, and Dir their
	// working directory.
	Command string `json:"command,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Queue   string `json:"queue"`
	// Torchrun reports whether its starter ends as torchrun does.
	Torchrun bool `json:"-"`
	// Open reports whether the run has not ended.
	Open       bool          `json:"open"`
	State      spec.RunState `json:"state"`
	Generation int           `json:"generation"`
	Started    time.Time     `json:"started,omitzero"`
	Ended      time.Time     `json:"ended,omitzero"`
	// Unanswered reports whether no worker answers for the run's workflow at the moment. Of the
	// tasks, it is then only known which are running. If a run ended without a result, nothing
	// is known about any of its tasks.
	Unanswered bool `json:"unanswered,omitempty"`
	// Unattended reports whether it is unanswered because no worker executes it. Otherwise a
	// worker polled less than half a minute ago, which may be frozen or cut off.
	Unattended bool `json:"unattended,omitempty"`
	// Paused reports whether it is unanswered because Temporal has paused its workflow.
	Paused bool         `json:"paused,omitempty"`
	Tasks  []TaskStatus `json:"tasks"`
	// GroupRestarts are the last restarts of the whole group, the oldest first.
	GroupRestarts []spec.GroupRestart `json:"group_restarts,omitempty"`
	// Waiting are the places that the run waits for.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Stopping is set while the tasks are stopping together.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Preemptions counts the returns to the queue after a notice, and PendingSince is the time of
	// a return to the queue if the run is pending again.
	Preemptions  int       `json:"preemptions,omitempty"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// Notice is set while the tasks have notice that they will be stopped.
	Notice *spec.StopNotice `json:"notice,omitempty"`
	// Verdict is the verdict of a run that has ended, even without a result; Ending is then
	// "terminated".
	Verdict spec.Verdict `json:"verdict,omitempty"`
	Ending  string       `json:"ending,omitempty"`
	// Silent are the hosts that have not sent anything for a while.
	Silent []SilentHost `json:"silent,omitempty"`
	// Slow are the tasks and hosts that take longer for a step than others, the slowest first.
	Slow []spec.Slow `json:"slow,omitempty"`
	// TooFewSteps reports whether tasks of an open run could be compared if more of their steps
	// were known.
	TooFewSteps bool `json:"too_few_steps,omitempty"`
	// Stacks has the stacks of the tasks of an open run as of its last capture.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// Elastic is set if the number of hosts may change and the run is open.
	Elastic *spec.ElasticStatus `json:"elastic,omitempty"`
	// OnDisconnect is the action of hosts without contact to the server.
	OnDisconnect spec.OnDisconnect `json:"on_disconnect,omitempty"`
	// GivenUpAfter is the time after the last heartbeat of a host at which an open run gives it up, or
	// 0 if it waits without limit.
	GivenUpAfter spec.Duration `json:"given_up_after,omitempty"`
	// SilenceIgnoresCPU reports whether a task of an open run can be silent although it uses
	// processor time.
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// Archive is the directory that an open run ships.
	Archive *spec.Archive `json:"archive,omitempty"`
	// Services are the services of the hosts of an open run.
	Services []spec.HostService `json:"-"`
	// Sweep is set for a sweep, which has trials and no tasks.
	Sweep *spec.SweepStatus `json:"sweep,omitempty"`
	// Result is set once the run has ended and left one.
	Result *spec.RunResult `json:"result,omitempty"`
	// Message is why an ended run has no result.
	Message string `json:"message,omitempty"`
	// Facts is what is so about the run, the most urgent first.
	Facts []Fact `json:"facts"`
}

// TaskStatus is the status of one task.
type TaskStatus struct {
	spec.TaskStatus
	PID      int       `json:"pid,omitempty"`
	Restarts int       `json:"restarts,omitempty"`
	Started  time.Time `json:"process_started,omitzero"`
	LogDir   string    `json:"log_dir,omitempty"`
	// Progress is the progress that the task has reported.
	Progress *spec.Progress `json:"progress,omitempty"`
	// Steps has the step times of the living process, or is nil if it has reported none. After
	// its end they are in Exit.
	Steps *spec.StepTime `json:"steps,omitempty"`
	// Usage is the resource usage of the living process, or nil if it is not known. After its
	// end it is in Exit.
	Usage *spec.LiveUsage `json:"usage,omitempty"`
	// LastOutput is the time at which the living process last wrote output, by the clock of its
	// host. It is zero if the process has written none, or if that is not known.
	LastOutput time.Time `json:"last_output,omitzero"`
	// NextStart is the time at which the task is restarted, if it waits for that.
	NextStart time.Time `json:"next_start,omitzero"`
	// LastFailure is why it is restarted.
	LastFailure string `json:"last_failure,omitempty"`
}

// Silence returns the time for which the task has shown no sign of work, or 0 if it does.
func (t TaskStatus) Silence() time.Duration {
	if t.Usage == nil {
		return 0
	}
	return time.Duration(t.Usage.SilentSeconds) * time.Second
}

// Waiting is a place or the end of a run that a run waits for.
type Waiting struct {
	// After is the earlier run whose end it waits for. The other fields are then empty.
	After string `json:"after,omitempty"`
	// Host is the host that the spec names, or "" for any.
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the host workers that are asked.
	Queue string `json:"queue"`
	// Refusal is the last refusal of a host, or what the fleet waits for, or "" before an
	// answer.
	Refusal string `json:"refusal,omitempty"`
	// Fetching is the progress of a host that fetches the archive of the run.
	Fetching *spec.Fetching `json:"fetching,omitempty"`
	// Position is the position in the queue of the fleet, from 1. It is 0 if the run is not
	// queued.
	Position int `json:"position,omitempty"`
	// Until is the time at which the run gives up.
	Until time.Time `json:"until,omitzero"`
}

// SilentHost is a host that has not sent anything for a while.
type SilentHost struct {
	Host string `json:"host"`
	// Heard is the time of the last heartbeat that the server received.
	Heard time.Time `json:"heard"`
	// GivenUp is the time at which the run gives the host up. It is zero if the run waits
	// without limit.
	GivenUp time.Time `json:"given_up,omitzero"`
}

// The states of an open run, in the words of lists, pages and the status.
const (
	StatePending = "pending" // for room on hosts
	StateWaiting = "waiting" // for the end of earlier runs (after)
	StateRunning = "running"
	StatePaused  = "paused" // in Temporal
)

// LastOutput returns when a living process of the run last wrote output. It returns nil if no
// process has, or if that is not known.
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

// remedy returns what a user can do about an absence, as the end of a sentence.
func (s *Status) remedy() string {
	switch {
	case s.Paused:
		return ""
	case spec.IsPrivateQueue(s.Queue), spec.IsAgentsQueue(s.Queue):
		return fmt.Sprintf("; if the command that ran it is gone, `clusterrun stop %s` ends it", s.RunID)
	}
	return fmt.Sprintf("; a `clusterrun worker` for the queue %s would execute it, and `clusterrun stop %s` ends it", s.Queue, s.RunID)
}

// Absence returns what is wrong with a run that does not answer, or "".
func (s *Status) Absence() string {
	switch {
	case s.Paused:
		return "paused in Temporal: it decides nothing until it is unpaused there"
	case s.Unattended:
		return "no host worker executes it"
	case s.Unanswered:
		return "its host worker does not answer"
	}
	return ""
}

// Terminated is the ending of a run that was ended on the server.
const Terminated = "terminated"

// IsTerminated reports whether the run was ended on the server, without the end of its tasks.
func (s *Status) IsTerminated() bool { return s.Ending == Terminated }

// Word returns the state of a run in a word.
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
