package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Event is a run's event.
type Event interface {
	// apply changes the machine. [Machine.Check] has accepted the event.
	apply(m *Machine)
}

// Begin reports that every host is reserved and prepared. It is the first event of each
// generation. The run time counts from the first Begin.
type Begin struct {
	// Elapsed is the run time of earlier generations.
	Elapsed time.Duration
	// Tasks is the generation's number of spec tasks, from rank 0. 0 means all. An elastic run has
	// fewer tasks on fewer hosts.
	Tasks int
}

// Resumed is the first event if the run continues in another execution of its workflow.
type Resumed struct {
	// Elapsed is the run time so far.
	Elapsed time.Duration
}

// PlacementFailed replaces Begin if some tasks were not placed. Hosts that accepted tasks are
// released as usual.
type PlacementFailed struct {
	Message string
	// Skipped reports whether an earlier run did not end as the spec requires.
	Skipped bool
}

// TaskEnded reports that a launch's RunTask activity closed: no more processes of the launch
// follow.
type TaskEnded struct {
	Task       string `json:"task"`
	Generation int    `json:"generation,omitempty"`
	Launch     int    `json:"launch,omitempty"`
	// Host is the task's host, which the run knows.
	Host string `json:"-"`
	// Exit is the last process's exit. It is nil if no process was started, or if the activity was
	// canceled between two processes.
	Exit *spec.Exit `json:"exit,omitempty"`
	// GivenUp reports whether the run gave the host up because it did not return.
	GivenUp bool `json:"given_up,omitempty"`
	// Await reports whether a task that has lost its peer stops the remaining tasks only after
	// error_grace. It is false for runs of older versions.
	Await bool `json:"-"`
}

// HostGivenUp reports that a host with tasks of the last generation did not return between that
// generation's end and the start of the next.
type HostGivenUp struct{ Host string }

// TimerFired reports that a timer set by [StartTimer] fired.
type TimerFired struct{ Timer Timer }

func (e TimerFired) apply(m *Machine) { m.timerFired(e.Timer) }

// Cancel reports that the workflow was cancelled or [spec.UpdateRequestStop] was sent.
type Cancel struct{ Reason string }

func (e Cancel) apply(m *Machine) { m.cancel(e.Reason) }

// Silent reports that all of a generation's tasks on a host are silent.
type Silent struct{ spec.SilentRequest }

// StopTogether is a task's or operator's request that all tasks exit on their own.
// [Machine.Stopping] returns the answer.
type StopTogether struct {
	spec.TogetherRequest
	At time.Time
}

// Captured answers [Capture].
type Captured struct {
	// For is as in [Capture].
	For spec.Cause
	// Files maps tasks to their files' paths. A task without a file is omitted.
	Files map[string]string
	// Stacks holds the stacks by rank, or the reason why one is missing.
	Stacks stacktree.Tree
	// Motion is the result of a second capture.
	Motion stacktree.Motion
	// Hosts maps each task to its host.
	Hosts map[string]string
}

// Released reports that every host was released. It lists the exits of all processes, including
// those that hosts replaced without adding to the run's history. It is the last event, and [Finish]
// answers it.
type Released struct {
	// Exits holds each task's exits, the oldest first.
	Exits map[string][]spec.Exit
	// Values holds the JSON values that tasks returned.
	Values map[string][]byte
	// Hosts maps each task to its host.
	Hosts map[string]string
	// Usage is the usage of the processes on the hosts that could be released.
	Usage spec.Usage
	// SharedMemory lists, by host, the memory in /dev/shm that exited processes left behind.
	SharedMemory []spec.SharedMemory
	// Lost lists the hosts that could not be released, and Problems describes the lost hosts of
	// the last generation.
	Lost, Problems []string
}

// Ends reports whether an event stops the run in any state.
func Ends(e Event) bool {
	switch e.(type) {
	case Cancel, TerminateAll:
		return true
	}
	return false
}
