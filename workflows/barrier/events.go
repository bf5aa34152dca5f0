package barrier

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Event is something that happened to a round.
type Event interface{ event() }

// Arrived: a task is at the barrier.
type Arrived struct {
	Host, Task, Key string
	// Digest is the [spec.ParticipantsDigest] of those it waits for.
	Digest string
	// Value is the text that it brings for the others.
	Value   string
	Timeout time.Duration // 0 means no limit
	Now     time.Time
}

// Withdrawn: an arrival no longer counts, because its process no longer waits. It has no effect
// for a key that never arrived.
type Withdrawn struct {
	Task, Key string
	Now       time.Time
}

// Passed: it is this late.
type Passed struct{ Now time.Time }

// Ended: a task has ended and does not come back. It matters only if the task
// is missing: who has arrived has done its part.
type Ended struct {
	Task string
	How  string // shown to users
}

// RunEnded: the run is over, or the generation the round is of.
type RunEnded struct{ How string }

// Cancelled: a user ended the round.
type Cancelled struct{}

func (Arrived) event()   {}
func (Withdrawn) event() {}
func (Passed) event()    {}
func (Ended) event()     {}
func (RunEnded) event()  {}
func (Cancelled) event() {}

// Answer ends the waiting of one arrival.
type Answer struct {
	Task, Key, Host string
	// State is [spec.BarrierReleased] or [spec.BarrierBroken]; empty when refused.
	State   spec.BarrierState
	Refused spec.BarrierRefusalWhy
}
