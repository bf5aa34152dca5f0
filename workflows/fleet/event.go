package fleet

import "time"

// Event is something that happened to a fleet.
type Event interface{ event() }

// Joined says that a host worker is there, or is there again, and what runs hold on it.
type Joined struct {
	Host  Host      `json:"host"`
	Holds []Holding `json:"holds,omitempty"`
	Now   time.Time `json:"-"`
}

// Silent says that a host worker has not been heard of. It is about that instance only.
type Silent struct {
	Name     string    `json:"name"`
	Instance string    `json:"instance"`
	Now      time.Time `json:"-"`
}

// Left says that a host worker has ended in order: nothing of it is left.
type Left struct {
	Name     string    `json:"name"`
	Instance string    `json:"instance"`
	Now      time.Time `json:"-"`
}

// Cordoned says that a host is to get no new tasks. With Drain those that it has are to
// end or to go elsewhere, until the deadline, if there is one.
type Cordoned struct {
	Name     string    `json:"name"`
	Reason   string    `json:"reason,omitempty"`
	Drain    bool      `json:"drain,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	Now      time.Time `json:"-"`
}

// Uncordoned takes a cordon, or a drain, back.
type Uncordoned struct {
	Name string    `json:"name"`
	Now  time.Time `json:"-"`
}

// Asked says that a run wants room for a generation. It may be said again: one that was
// granted is granted the same again. What the run holds from earlier generations is room
// for this one, and is given up with its grant.
type Asked struct {
	Run        Run    `json:"run"`
	Generation int    `json:"generation,omitempty"`
	Demand     Demand `json:"demand"`
	// Since is when the run asked first: its age goes along when it asks again.
	Since time.Time `json:"since"`
	Now   time.Time `json:"-"`
}

// Placed says that all hosts of a grant have taken their tasks.
type Placed struct {
	Run        Run       `json:"run"`
	Generation int       `json:"generation,omitempty"`
	Now        time.Time `json:"-"`
}

// Refused says that a host of a grant has not taken its tasks. The whole grant is
// returned, and the run waits again, with its age.
type Refused struct {
	Run        Run       `json:"run"`
	Generation int       `json:"generation,omitempty"`
	Host       string    `json:"host,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Now        time.Time `json:"-"`
}

// Freed says that a run holds nothing on a host any more. An empty host means all of them,
// and that the run does not wait either: it has ended.
type Freed struct {
	Run  Run       `json:"run"`
	Host string    `json:"host,omitempty"`
	Now  time.Time `json:"-"`
}

func (Joined) event()     {}
func (Silent) event()     {}
func (Left) event()       {}
func (Cordoned) event()   {}
func (Uncordoned) event() {}
func (Asked) event()      {}
func (Placed) event()     {}
func (Refused) event()    {}
func (Freed) event()      {}

// Action is what is to be done after an event.
type Action interface{ action() }

// Grant gives a run all that it asked for, or says why it can never have that.
type Grant struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Places are in the order of their lowest ranks; none: it is refused.
	Places  []Place `json:"places,omitempty"`
	Refusal string  `json:"refusal,omitempty"`
}

// Move asks a run to leave a host that drains: a group does with its next generation.
type Move struct {
	Run    Run
	Host   string
	Reason string
}

func (Grant) action() {}
func (Move) action()  {}
