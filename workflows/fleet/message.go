package fleet

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
}

// CheckInput names runs that may have ended without a message to their fleet.
type CheckInput struct {
	Runs []Run `json:"runs"`
}

// CheckOutput has the runs that have ended.
type CheckOutput struct {
	Ended []Run `json:"ended"`
}
