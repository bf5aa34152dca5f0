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
	Grant  *Grant  `json:"grant,omitempty"`
	Move   *Move   `json:"move,omitempty"`
	Return *Return `json:"return,omitempty"`
}

// HostLeaseInput names a host, which remains in the fleet until the activity returns.
type HostLeaseInput struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Beat is the heartbeat interval; see [HeartbeatInterval].
	Beat time.Duration `json:"beat"`
}

// minBeat is the heartbeat interval of a host in a small fleet, and eachBeat the average interval
// between heartbeats in a large one.
const minBeat, eachBeat = 5 * time.Second, 25 * time.Millisecond

// HeartbeatInterval returns the heartbeat interval in a fleet with the given number of hosts. A
// host counts as silent after three missed heartbeats. All hosts together send at most 40
// heartbeats per second, because the heartbeats go to one workflow, whose changes the server writes
// one after another.
func HeartbeatInterval(hosts int) time.Duration { return max(minBeat, time.Duration(hosts)*eachBeat) }

// CheckInput names runs that may have finished without notifying their fleet.
type CheckInput struct {
	Runs []Run `json:"runs"`
}

// CheckOutput lists the finished runs.
type CheckOutput struct {
	Ended []Run `json:"ended"`
}
