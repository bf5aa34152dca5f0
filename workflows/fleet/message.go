package fleet

import "time"

// Message is a message from a run to its fleet. One field is set.
type Message struct {
	Asked   *Asked   `json:"asked,omitempty"`
	Placed  *Placed  `json:"placed,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
	Freed   *Freed   `json:"freed,omitempty"`
}

// Answer is a message from a fleet to a run. One field is set.
type Answer struct {
	Grant   *Grant   `json:"grant,omitempty"`
	Move    *Move    `json:"move,omitempty"`
	Return  *Return  `json:"return,omitempty"`
	Preempt *Preempt `json:"preempt,omitempty"`
}

// HostLeaseInput names the host whose place in a fleet an activity holds, until it returns.
type HostLeaseInput struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Beat is the time between two heartbeats; see [HeartbeatInterval].
	Beat time.Duration `json:"beat"`
}

// minBeat is the time between two heartbeats of a host in a small fleet, and eachBeat that
// between the heartbeats of any two hosts in a large one.
const minBeat, eachBeat = 5 * time.Second, 25 * time.Millisecond

// HeartbeatInterval returns the time between two heartbeats of a host in a fleet with that many hosts. After
// three times as long it counts as silent. All hosts together send at most 40 heartbeats in a
// second, because they go to one workflow, whose changes the server writes one after the other.
func HeartbeatInterval(hosts int) time.Duration { return max(minBeat, time.Duration(hosts)*eachBeat) }

// CheckInput names runs that may have ended without a message to their fleet.
type CheckInput struct {
	Runs []Run `json:"runs"`
}

// CheckOutput has the runs that have ended.
type CheckOutput struct {
	Ended []Run `json:"ended"`
}
