package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Event is something that happened to a run.
type Event interface{ event() }

// Begin: every host is reserved and prepared. It is the first event, and comes
// once for every generation. The run time counts from the first.
type Begin struct {
	// Elapsed is the run time so far, where there was an earlier generation.
	Elapsed time.Duration
}

// Resumed comes before Begin where the run goes on in another execution of its
// workflow.
type Resumed struct {
	// Elapsed is the run time so far.
	Elapsed time.Duration
}

// PlacementFailed comes instead of Begin: no host took the tasks. Hosts that did
// take some are released like any other.
type PlacementFailed struct{ Message string }

// TaskEnded: the RunTask activity of a launch closed, and there will be no
// further process of that launch.
type TaskEnded struct {
	Task       string
	Generation int
	Launch     int
	// Host is where the task ran.
	Host string
	// Exit is the last process's; nil where none was started, or where the
	// activity was cancelled while it waited to start one again.
	Exit *spec.Exit
}

// TimerFired: a timer asked for by [StartTimer] ran out.
type TimerFired struct{ Timer Timer }

// Cancel: the workflow was cancelled, or [spec.UpdateRequestStop] was sent.
type Cancel struct{ Reason string }

// TerminateTasks, TerminateAll, RestartTasks, SignalTasks and StartTask are the
// operator's requests. [Machine.Check] says beforehand whether one is valid.
type (
	TerminateTasks struct {
		Tasks  []string
		Signal string
		Grace  *time.Duration
	}
	TerminateAll struct {
		Signal string
		Grace  *time.Duration
	}
	RestartTasks struct {
		Tasks  []string
		Signal string
		Grace  *time.Duration
	}
	SignalTasks struct {
		Tasks  []string
		Signal string
	}
	// StartTask has the task as it is to run; the machine gives it its rank. New
	// allows an index that leaves a gap.
	StartTask struct {
		Task spec.Task
		New  bool
	}
	// CaptureStacks is for these tasks, or for all.
	CaptureStacks struct{ Tasks []string }
)

// StopTogether is the wish that all tasks stop, each by itself; a task's, or an
// operator's. [Machine.Stopping] is the answer.
type StopTogether struct {
	spec.TogetherRequest
	At time.Time
}

// ClearStop takes such a stop back. [Machine.Stopping] is the answer.
type ClearStop struct{ spec.ClearStopRequest }

// Captured answers [Capture]: the paths of the files, by task, as far as there
// are any.
type Captured struct{ Files map[string]string }

// Released: every host was given back. It brings all exits of all tasks, also
// those of processes that were started again, which cost the run no history.
// It is the last event; the answer to it has [Finish].
type Released struct {
	// Exits has those of each task by name, the oldest first.
	Exits map[string][]spec.Exit
	// Values has the JSON values that tasks returned.
	Values map[string][]byte
	// Hosts has the host of each task.
	Hosts map[string]string
	// Problems names hosts that could not be released, and why.
	Problems []string
}

// Ends reports whether an event ends the run, whatever its state.
func Ends(e Event) bool {
	switch e.(type) {
	case Cancel, TerminateAll:
		return true
	}
	return false
}

func (Begin) event()           {}
func (Resumed) event()         {}
func (PlacementFailed) event() {}
func (TaskEnded) event()       {}
func (TimerFired) event()      {}
func (Cancel) event()          {}
func (TerminateTasks) event()  {}
func (TerminateAll) event()    {}
func (RestartTasks) event()    {}
func (SignalTasks) event()     {}
func (StartTask) event()       {}
func (CaptureStacks) event()   {}
func (StopTogether) event()    {}
func (ClearStop) event()       {}
func (Captured) event()        {}
func (Released) event()        {}
