package closure

import "fmt"

// Messages of programs that follow the history of a queue. The other requests of programs are
// the inputs of the queue's updates.
type (
	// Opened describes a queue that exists.
	Opened struct {
		// At is a position in the history: closures that are scheduled from now on end after it.
		At string `json:"at"`
		// Room is the number of closures that can be scheduled before the queue reports its
		// room.
		Room int `json:"room"`
	}
	// OutcomesRequest asks for the outcomes of closures.
	OutcomesRequest struct {
		Client string `json:"client"`
		// After is the position up to which the client has read.
		After string `json:"after"`
		// Wait is the longest time to wait for something new, in seconds.
		Wait float64 `json:"wait,omitempty"`
		// Tuples reports whether values keep the objects that stand for tuples of Python.
		Tuples bool `json:"tuples,omitempty"`
	}
	// Outcomes are outcomes of closures of the queue, of all clients: first Outcomes, and then
	// Cancelled.
	Outcomes struct {
		// At is the position up to which the history was read.
		At        string      `json:"at"`
		Outcomes  []Outcome   `json:"outcomes,omitempty"`
		Cancelled []Cancelled `json:"cancelled,omitempty"`
	}
	// Cancelled are closures that the queue has cancelled itself, from First to Last.
	Cancelled struct {
		First uint64 `json:"first"`
		Last  uint64 `json:"last"`
		// Text is the reason, if it is not [TextCancelled].
		Text string `json:"text,omitempty"`
	}
	// FindRequest asks for closures by their IDs, however old.
	FindRequest struct {
		Closures []uint64 `json:"closures"`
		Tuples   bool     `json:"tuples,omitempty"`
	}
	// Found has the outcomes of closures that have ended.
	Found struct {
		Outcomes []Outcome `json:"outcomes"`
	}
)

// Each calls do with the outcomes of the given closures, in order.
func (o Outcomes) Each(of map[uint64]bool, do func(Outcome)) {
	for _, one := range o.Outcomes {
		if of[one.ID] {
			do(one)
		}
	}
	for _, c := range o.Cancelled {
		// The range may have many more closures than the caller asks for.
		for id := range of {
			if c.Has(id) {
				do(c.Outcome(id))
			}
		}
	}
}

// Has reports whether a closure is among them.
func (c Cancelled) Has(id uint64) bool { return c.First <= id && id <= c.Last }

// Outcome returns the outcome of one of them.
func (c Cancelled) Outcome(id uint64) Outcome {
	o := Outcome{ID: id, Kind: OutcomeCancelled}
	if c.Text != "" {
		o.Error = &Error{Kind: ErrCancelled, Message: c.Text, Closure: id}
	}
	return o
}

const (
	// MaxWait bounds how long a request may wait for outcomes, or for closures to call, in
	// seconds.
	MaxWait = 20
	// MaxListed bounds a list of IDs in a request.
	MaxListed = 4096
)

// Validate checks the request. The error is an [*spec.InvalidRequestError].
func (r OutcomesRequest) Validate() error {
	c := &checker{}
	c.checkClient(r.Client)
	if r.After == "" {
		c.Add("after", "is missing", "give the at of the previous answer, or of the answer to open")
	}
	if !(r.Wait >= 0 && r.Wait <= MaxWait) {
		c.Add("wait", fmt.Sprintf("is %g", r.Wait), fmt.Sprintf("give 0 to %d seconds", MaxWait))
	}
	return c.Err()
}

// Validate checks the request. The error is an [*spec.InvalidRequestError].
func (r FindRequest) Validate() error {
	c := &checker{}
	if len(r.Closures) == 0 {
		c.Add("closures", "is empty", "give the IDs of closures")
	}
	c.checkIDs(r.Closures)
	return c.Err()
}

// Validate checks the request. The error is an [*spec.InvalidRequestError].
func (r CancelRequest) Validate() error {
	c := &checker{}
	c.checkIDs(r.Closures)
	return c.Err()
}

func (c *checker) checkIDs(ids []uint64) {
	if len(ids) > MaxListed {
		c.Add("closures", fmt.Sprintf("has %d elements", len(ids)), fmt.Sprintf("give at most %d", MaxListed))
	}
}
