package fleet

import (
	"fmt"
	"strings"
	"time"
)

// FailedCheck is a host's failed check. A host with failed checks does not get new tasks until it
// joins without them.
type FailedCheck struct {
	Check string `json:"check"`
	// Reason is one short line.
	Reason string `json:"reason"`
	// Since is zero if the check has not finished yet.
	Since time.Time `json:"since,omitzero"`
}

// String returns the check's name and the reason.
func (f FailedCheck) String() string { return fmt.Sprintf("check %s: %s", f.Check, f.Reason) }

// CheckResult is the last result of a host's check.
type CheckResult struct {
	Check string `json:"check"`
	// Failed is why it failed, or empty if it succeeded.
	Failed string `json:"failed,omitempty"`
	// At is the time it finished, and Seconds its duration.
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
}

// HostBeat holds the heartbeat details of a host's lease. They are not in the history; only the
// server keeps the latest ones.
type HostBeat struct {
	Host   string        `json:"host"`
	Checks []CheckResult `json:"checks,omitempty"`
}

// CordonedBy explains why a host does not get new tasks.
type CordonedBy string

// The values of [CordonedBy]. It is empty if the host is not cordoned.
const (
	CordonedByPerson CordonedBy = "person"
	CordonedByCheck  CordonedBy = "check"
)

// cordonedBy returns why and since when the host is cordoned. An operator's cordon takes
// precedence, because only an operator lifts it.
func (h *host) cordonedBy() (by CordonedBy, why string, since time.Time) {
	switch {
	case h.Cordon.On:
		return CordonedByPerson, h.Cordon.Reason, h.Cordon.Since
	case len(h.Failing) > 0:
		var all []string
		for _, f := range h.Failing {
			all = append(all, f.String())
		}
		return CordonedByCheck, strings.Join(all, "; "), h.Failing[0].Since
	}
	return "", "", time.Time{}
}

// closed describes why the host does not get tasks from pending runs.
func (h *host) closed() string {
	text := fmt.Sprintf("%s %s", h.Name, h.state())
	if by, why, _ := h.cordonedBy(); !h.Silent && by == CordonedByCheck {
		text += " by its " + why
	}
	return text
}
