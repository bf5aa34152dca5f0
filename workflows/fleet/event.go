package fleet

import "time"

// Event is a fleet's event.
type Event interface{ event() }

// Joined reports that a host worker has joined or rejoined, and what runs hold on it.
type Joined struct {
	Host  Host      `json:"host"`
	Holds []Holding `json:"holds,omitempty"`
	Now   time.Time `json:"-"`
}

// Silent reports that a host worker has stopped answering. It applies only to the given instance.
type Silent struct {
	Name     string    `json:"name"`
	Instance string    `json:"instance"`
	Now      time.Time `json:"-"`
}

// Left reports that a host worker has shut down normally, without any processes left.
type Left struct {
	Name     string    `json:"name"`
	Instance string    `json:"instance"`
	Now      time.Time `json:"-"`
}

// Cordoned reports that a host must not get new tasks. If Drain is set, its present tasks must end
// or move, by the deadline if there is one.
type Cordoned struct {
	Name     string    `json:"name"`
	Reason   string    `json:"reason,omitempty"`
	Drain    bool      `json:"drain,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	Now      time.Time `json:"-"`
}

// Uncordoned lifts a cordon or a drain.
type Uncordoned struct {
	Name string    `json:"name"`
	Now  time.Time `json:"-"`
}

// Asked reports that a run requests capacity for a generation. It may be repeated; a run that
// already has a grant gets the same grant again. The capacity that the run holds for earlier
// generations may be reused for the new one. Whatever is not reused is released with the grant.
type Asked struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Try is the number of this generation's grants that hosts have refused.
	Try    int    `json:"try,omitempty"`
	Demand Demand `json:"demand"`
	// Since is the time of the run's first request, which determines its age.
	Since time.Time `json:"since"`
	// Last reports whether the run no longer waits. It is then either granted now, or refused with
	// a description of what is missing.
	Last bool      `json:"last,omitempty"`
	Now  time.Time `json:"-"`
}

// Placed reports that all of a grant's hosts have accepted their tasks.
type Placed struct {
	Run        Run       `json:"run"`
	Generation int       `json:"generation,omitempty"`
	Now        time.Time `json:"-"`
}

// Refused reports that one of a grant's hosts has refused its tasks, and that the remaining hosts
// have released theirs. The whole grant is returned. The run keeps its age, and waits for its next
// try.
type Refused struct {
	Run        Run       `json:"run"`
	Generation int       `json:"generation,omitempty"`
	Try        int       `json:"try,omitempty"`
	Host       string    `json:"host,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Now        time.Time `json:"-"`
}

// Freed reports that a run no longer holds anything on a host. If Host is empty, the run has
// finished, and neither holds nor waits for anything. If Host is set, a grant that is not yet
// placed is kept, because it is newer.
type Freed struct {
	Run  Run       `json:"run"`
	Host string    `json:"host,omitempty"`
	Now  time.Time `json:"-"`
}

// Passed reports the current time; see [Machine.Wake].
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

// Action is something that the caller must do after an event.
type Action interface{ action() }

// Grant gives a run all the capacity that it requested, or reports why the request can never be
// granted.
type Grant struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Try is the number of the request. The run ignores answers to earlier requests.
	Try int `json:"try,omitempty"`
	// Places is ordered by lowest rank. If it is empty, the run is refused.
	Places  []Place `json:"places,omitempty"`
	Refusal string  `json:"refusal,omitempty"`
}

// Move requests that a run leave a draining host by the deadline, if there is one. A group leaves
// with its next generation.
type Move struct {
	Run      Run       `json:"run"`
	Host     string    `json:"host"`
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// Return requests that a waiting run release what its earlier generations hold, with a [Freed] for
// each host. Otherwise, two runs could wait for each other forever.
type Return struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
}

func (Grant) action()  {}
func (Move) action()   {}
func (Return) action() {}
