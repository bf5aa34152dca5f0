package spec

import (
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// RequeueOn is an event that returns the run to the queue.
type RequeueOn string

// The values of [RequeueOn].
const (
	// RequeueOnPreemption means a stop after a draining host's notice.
	RequeueOnPreemption RequeueOn = "preemption"
	// RequeueOnTimeout means that timeout or max_run_time passed.
	RequeueOnTimeout RequeueOn = "timeout"
	// RequeueOnHostLost means that a host was lost.
	RequeueOnHostLost RequeueOn = "host-lost"
)

var requeueOns = []RequeueOn{RequeueOnPreemption, RequeueOnTimeout, RequeueOnHostLost}

// DefaultRequeueOn is the default value of requeue_on.
var DefaultRequeueOn = []RequeueOn{RequeueOnPreemption}

// Requeues reports whether the run returns to the queue after the given event. The spec must
// include defaults.
func (s *RunSpec) Requeues(on RequeueOn) bool { return slices.Contains(s.RequeueOn, on) }

// requeuesWithin reports whether max_restarts limits the run's returns to the queue.
func (s *RunSpec) requeuesWithin() bool {
	return s.Requeues(RequeueOnTimeout) || s.Requeues(RequeueOnHostLost)
}

// NoticeFrom is a notice's origin.
type NoticeFrom string

// The values of [NoticeFrom].
const (
	NoticeFromDrain    NoticeFrom = "drain"    // a host is draining
	NoticeFromOperator NoticeFrom = "operator" // an operator's request
)

// StopNotice warns a run's tasks that they will be stopped at a deadline.
type StopNotice struct {
	From   NoticeFrom `json:"from"`
	Reason string     `json:"reason,omitempty"`
	// Given is the time of the notice, and Deadline the time when remaining tasks are stopped.
	Given    time.Time `json:"given,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Requeue reports whether the run then returns to the queue.
	Requeue bool `json:"requeue,omitempty"`
}

// String returns why the tasks are stopped, in one line.
func (n StopNotice) String() string {
	switch {
	case n.Reason != "":
		return firstLine(n.Reason)
	case n.From == NoticeFromDrain:
		return "a host drains"
	}
	return "an operator asked"
}

// NoticeRequest is the input of [UpdateNotice].
type NoticeRequest struct {
	// Within is the time from the request to the stop.
	Within Duration `json:"within"`
	Reason string   `json:"reason,omitempty"`
	// Requeue returns the run to the queue afterwards.
	Requeue bool `json:"requeue,omitempty"`
}

// maxNotice limits the time of a notice.
const maxNotice = Duration(7 * 24 * time.Hour)

// Validate checks the request. The error is an [*InvalidRequestError].
func (r NoticeRequest) Validate() error {
	c := &checker{}
	if r.Within <= 0 || r.Within > maxNotice {
		c.add("within", fmt.Sprintf("must be above 0s and at most %s, not %s", maxNotice, r.Within), "specify the time before the stop, such as 2m")
	}
	return c.requestError()
}

// Bounded returns the request with its reason truncated, and without control characters.
func (r NoticeRequest) Bounded() NoticeRequest {
	r.Reason = shorten.Text(EscapeControl(r.Reason), maxTogetherWords)
	return r
}
