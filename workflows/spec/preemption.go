package spec

import (
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Preemption says how a run makes room for others.
type Preemption struct {
	Notice *Duration `json:"notice,omitempty"`
	Signal string    `json:"signal,omitempty"`
	Max    *int      `json:"max,omitempty"`
}

// RequeueOn is an end of the tasks after which the run is pending again.
type RequeueOn string

// The values of [RequeueOn].
const (
	// RequeueOnPreemption means a stop after a notice of the queue, or of a host that drains.
	RequeueOnPreemption RequeueOn = "preemption"
	// RequeueOnTimeout means the end of timeout or of max_run_time.
	RequeueOnTimeout RequeueOn = "timeout"
	// RequeueOnHostLost means the loss of a host.
	RequeueOnHostLost RequeueOn = "host-lost"
)

var requeueOns = []RequeueOn{RequeueOnPreemption, RequeueOnTimeout, RequeueOnHostLost}

// DefaultPreemptNotice is the default time between a notice and the stop, and
// DefaultRequeueOn the default of requeue_on.
const DefaultPreemptNotice = Duration(30 * time.Second)

var DefaultRequeueOn = []RequeueOn{RequeueOnPreemption}

// Requeues reports whether the run is pending again after an end. The spec must have its
// defaults.
func (s *RunSpec) Requeues(on RequeueOn) bool { return slices.Contains(s.RequeueOn, on) }

// requeuesWithin reports whether max_restarts bounds returns to the queue.
func (s *RunSpec) requeuesWithin() bool {
	return s.Requeues(RequeueOnTimeout) || s.Requeues(RequeueOnHostLost)
}

// NoticeFrom says who has given a notice.
type NoticeFrom string

// The values of [NoticeFrom].
const (
	NoticeFromQueue    NoticeFrom = "queue"    // a run of higher priority needs the room
	NoticeFromDrain    NoticeFrom = "drain"    // a host drains
	NoticeFromOperator NoticeFrom = "operator" // a request
)

// StopNotice tells the tasks of a run that they are stopped at a deadline.
type StopNotice struct {
	From   NoticeFrom `json:"from"`
	Reason string     `json:"reason,omitempty"`
	// Given is the time of the notice, and Deadline the time at which tasks that still live are
	// stopped.
	Given    time.Time `json:"given,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Requeue reports whether the run is pending again afterwards.
	Requeue bool `json:"requeue,omitempty"`
}

// String returns why the tasks are stopped, in one line.
func (n StopNotice) String() string {
	text := map[NoticeFrom]string{
		NoticeFromQueue: "another run needs the room", NoticeFromDrain: "a host drains",
	}[n.From]
	switch {
	case n.Reason != "":
		text = firstLine(n.Reason)
	case text == "":
		text = "an operator asked"
	}
	return text
}

// NoticeRequest is the input of [UpdateNotice].
type NoticeRequest struct {
	// Within is the time from the request to the stop.
	Within Duration `json:"within"`
	Reason string   `json:"reason,omitempty"`
	// Requeue makes the run pending again afterwards.
	Requeue bool `json:"requeue,omitempty"`
}

// maxNotice bounds the time of a notice.
const maxNotice = Duration(7 * 24 * time.Hour)

// Validate checks the request. The error is an [*InvalidRequestError].
func (r NoticeRequest) Validate() error {
	c := &checker{}
	if r.Within <= 0 || r.Within > maxNotice {
		c.add("within", fmt.Sprintf("must be above 0s and at most %s, not %s", maxNotice, r.Within), "give the time until the stop, such as 2m")
	}
	return c.requestError()
}

// Bounded returns the request with its reason cut to its bound, and without control characters.
func (r NoticeRequest) Bounded() NoticeRequest {
	r.Reason = shorten.Text(EscapeControl(r.Reason), maxTogetherWords)
	return r
}
