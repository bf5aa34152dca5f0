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
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Try counts the grants of this generation that hosts refused.
	Try    int    `json:"try,omitempty"`
	Demand Demand `json:"demand"`
	// Since is when the run asked first: its age goes along when it asks again.
	Since time.Time `json:"since"`
	// Last reports whether the run waits no longer: it is granted its room now, or refused
	// with what is missing.
	Last bool      `json:"last,omitempty"`
	Now  time.Time `json:"-"`
}

// Placed says that all hosts of a grant have taken their tasks.
type Placed struct {
	Run        Run       `json:"run"`
	Generation int       `json:"generation,omitempty"`
	Now        time.Time `json:"-"`
}

// Refused says that a host of a grant has not taken its tasks, and that the others have
// given theirs back. The whole grant is returned, and the run waits again, with its age,
// for its next try.
type Refused struct {
	Run        Run       `json:"run"`
	Generation int       `json:"generation,omitempty"`
	Try        int       `json:"try,omitempty"`
	Host       string    `json:"host,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Now        time.Time `json:"-"`
}

// Freed says that a run holds nothing on a host any more. An empty host means all of them,
// and that the run does not wait either: it has ended. What a grant gave it that is not
// placed yet is not meant by the name of a host: that was freed before.
type Freed struct {
	Run  Run       `json:"run"`
	Host string    `json:"host,omitempty"`
	Now  time.Time `json:"-"`
}

// Passed says that it is this late; see [Machine.Wake].
type Passed struct {
	Now time.Time `json:"-"`
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
func (Passed) event()     {}

// Action is what is to be done after an event.
type Action interface{ action() }

// Grant gives a run all that it asked for, or says why it can never have that.
type Grant struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Try is that of the question: the answer to an earlier one is for nobody.
	Try int `json:"try,omitempty"`
	// Places are in the order of their lowest ranks; none: it is refused.
	Places  []Place `json:"places,omitempty"`
	Refusal string  `json:"refusal,omitempty"`
}

// Move asks a run to leave a host that drains, until the deadline, if there is one: a group
// does with its next generation.
type Move struct {
	Run      Run       `json:"run"`
	Host     string    `json:"host"`
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// Return asks a run that waits to give back what its earlier generations hold, with a
// [Freed] for each host. Two runs that wait for what the other holds would wait for ever.
type Return struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
}

func (Grant) action()  {}
func (Move) action()   {}
func (Return) action() {}
