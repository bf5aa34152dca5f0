package barrier

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Event is a round's input.
type Event interface{ event() }

// Arrived reports that a task is at the barrier.
type Arrived struct {
	Host, Task, Key string
	// Digest is the [spec.ParticipantsDigest] of the tasks that it waits for.
	Digest string
	// Value is the string that the arrival carries to all participants.
	Value   string
	Timeout time.Duration // 0 means no limit
	Now     time.Time
}

// Withdrawn reports that an arrival no longer counts because its process no longer waits. An
// unknown key is ignored.
type Withdrawn struct {
	Task, Key string
	Now       time.Time
}

// Passed reports the current time.
type Passed struct{ Now time.Time }

// Ended reports that a task has ended and will not return. It matters only if the task is missing,
// because an arrived task has done its part.
type Ended struct {
	Task string
	How  string // how the task ended, for users
}

// RunEnded reports that the run or the round's generation has ended.
type RunEnded struct{ How string }

// Cancelled reports that a user canceled the round.
type Cancelled struct{}

func (Arrived) event()   {}
func (Withdrawn) event() {}
func (Passed) event()    {}
func (Ended) event()     {}
func (RunEnded) event()  {}
func (Cancelled) event() {}

// Answer answers one arrival, which then no longer waits.
type Answer struct {
	Task, Key, Host string
	// State is [spec.BarrierReleased] or [spec.BarrierBroken], or empty if the arrival is
	// refused.
	State   spec.BarrierState
	Refused spec.BarrierRefusalWhy
}
