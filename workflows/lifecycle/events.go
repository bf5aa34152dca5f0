package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Event is something that happened to a run.
type Event interface {
	// apply changes the machine. [Machine.Check] has accepted the event.
	apply(m *Machine)
}

// Begin reports that every host is reserved and prepared. It is the first event of each
// generation. The run time counts from the first Begin.
type Begin struct {
	// Elapsed is the run time of earlier generations.
	Elapsed time.Duration
	// Tasks is the number of tasks of the spec in the generation, which has the lowest ranks. 0
	// means all. An elastic run has fewer on fewer hosts.
	Tasks int
}

// Resumed comes first if the run continues in another execution of its workflow.
type Resumed struct {
	// Elapsed is the run time so far.
	Elapsed time.Duration
}

// PlacementFailed comes instead of Begin if not all tasks found a host. Hosts that took
// some are released like any other.
type PlacementFailed struct {
	Message string
	// Skipped reports whether an earlier run did not end as the spec requires.
	Skipped bool
}

// TaskEnded reports that the RunTask activity of a launch closed: the launch has no
// further process.
type TaskEnded struct {
	Task       string `json:"task"`
	Generation int    `json:"generation,omitempty"`
	Launch     int    `json:"launch,omitempty"`
	// Host is the host of the task, which the run knows.
	Host string `json:"-"`
	// Exit is the exit of the last process. It is nil if none was started, or if the activity
	// was cancelled between two processes.
	Exit *spec.Exit `json:"exit,omitempty"`
	// GivenUp reports whether the run gave the host up because it did not come back.
	GivenUp bool `json:"given_up,omitempty"`
	// Await reports whether a task that has lost its peer stops the others only after
	// error_grace. Runs that began before this was known did not wait.
	Await bool `json:"-"`
}

// HostGivenUp reports that a host with tasks of the last generation did not come back, after the
// generation has ended and before the next begins.
type HostGivenUp struct{ Host string }

// TimerFired reports that a timer of [StartTimer] fired.
type TimerFired struct{ Timer Timer }

func (e TimerFired) apply(m *Machine) { m.timerFired(e.Timer) }

// Cancel reports that the workflow was cancelled or [spec.UpdateRequestStop] was sent.
type Cancel struct{ Reason string }

func (e Cancel) apply(m *Machine) { m.cancel(e.Reason) }

// Silent reports that all tasks of a generation on a host are silent.
type Silent struct{ spec.SilentRequest }

// StopTogether is the request of a task or an operator that all tasks end by themselves.
// [Machine.Stopping] is the answer.
type StopTogether struct {
	spec.TogetherRequest
	At time.Time
}

// ClearStop withdraws such a stop. [Machine.Stopping] is the answer.
type ClearStop struct{ spec.ClearStopRequest }

// Captured answers [Capture].
type Captured struct {
	// For is as in [Capture].
	For spec.Cause
	// Files has the paths of the files, by task. A task without one is left out.
	Files map[string]string
	// Stacks has the stacks by rank, with the reason for each that is not known.
	Stacks stacktree.Tree
	// Motion is the result of a second look.
	Motion stacktree.Motion
	// Hosts has the host of each task.
	Hosts map[string]string
}

// Released reports that every host was released. It has the exits of all processes, also of
// processes that the hosts replaced, which cost the run no history. It is the last event, and
// [Finish] answers it.
type Released struct {
	// Exits holds the exits of each task, the oldest first.
	Exits map[string][]spec.Exit
	// Values holds the JSON values that tasks returned.
	Values map[string][]byte
	// Hosts holds the host of each task.
	Hosts map[string]string
	// Usage is the usage of the processes on the hosts that could be released.
	Usage spec.Usage
	// SharedMemory has the memory in /dev/shm that ended processes hold, by host.
	SharedMemory []spec.SharedMemory
	// Lost holds the names of the hosts that could not be released, and Problems describes those of
	// the last generation.
	Lost, Problems []string
}

// Ends reports whether an event ends the run in any state.
func Ends(e Event) bool {
	switch e.(type) {
	case Cancel, TerminateAll:
		return true
	}
	return false
}
