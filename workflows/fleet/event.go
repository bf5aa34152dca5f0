package fleet

import "time"

// Event is something that happened to a fleet.
type Event interface{ event() }

// Joined says that a host worker is there, or is there again, and what runs hold on it.
type Joined struct {
	Host  Host
	Holds []Holding
	Now   time.Time
}

// Silent says that a host worker has not been heard of. It is about that instance only.
type Silent struct {
	Name, Instance string
	Now            time.Time
}

// Left says that a host worker has ended in order: nothing of it is left.
type Left struct {
	Name, Instance string
	Now            time.Time
}

// Cordoned says that a host is to get no new tasks. With Drain those that it has are to
// end or to go elsewhere, until the deadline, if there is one.
type Cordoned struct {
	Name, Reason string
	Drain        bool
	Deadline     time.Time
	Now          time.Time
}

// Uncordoned takes a cordon, or a drain, back.
type Uncordoned struct {
	Name string
	Now  time.Time
}

// Asked says that a run wants room for a generation. It may be said again.
type Asked struct {
	Run        Run
	Generation int
	Demand     Demand
	// Since is when the run asked first: its age goes along when it asks again.
	Since time.Time
	Now   time.Time
}

// Placed says that all hosts of a grant have taken their tasks.
type Placed struct {
	Run        Run
	Generation int
	Now        time.Time
}

// Refused says that a host of a grant has not taken its tasks. The whole grant is
// returned, and the run waits again, with its age.
type Refused struct {
	Run        Run
	Generation int
	Host       string
	Reason     string
	Now        time.Time
}

// Freed says that a run holds nothing on a host any more. An empty host means all of them,
// and that the run does not wait either: it has ended.
type Freed struct {
	Run  Run
	Host string
	Now  time.Time
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

// Grant gives a run all that it asked for.
type Grant struct {
	Run        Run
	Generation int
	// Places are in the order of their lowest ranks.
	Places []Place
}

// Move asks a run to leave a host that drains: a group does with its next generation.
type Move struct {
	Run    Run
	Host   string
	Reason string
}

func (Grant) action() {}
func (Move) action()  {}
