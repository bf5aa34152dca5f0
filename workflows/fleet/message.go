package fleet

// Message is what a run tells its fleet. One of the fields is set.
type Message struct {
	Asked   *Asked   `json:"asked,omitempty"`
	Placed  *Placed  `json:"placed,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
	Freed   *Freed   `json:"freed,omitempty"`
}

// LeaseInput names the host whose place in a fleet an activity holds, until it returns.
type LeaseInput struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
}

// CheckInput names runs that may have ended without telling their fleet.
type CheckInput struct {
	Runs []Run `json:"runs"`
}

// CheckOutput are those that have.
type CheckOutput struct {
	Ended []Run `json:"ended"`
}
