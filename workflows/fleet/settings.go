package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Settings are a queue's user-defined rules.
type Settings struct {
	Preempt Preempting `json:"preempt,omitempty"`
	// LongestNotice limits the time between a preemption notice and the stop. 0 means that each
	// run's spec decides.
	LongestNotice time.Duration `json:"longest_notice,omitempty"`
	// SickHosts determines what happens to a host on which several runs have failed, while other
	// hosts are fine. Empty means ReportSickHosts.
	SickHosts SickHosts `json:"sick_hosts,omitempty"`
}

// SickHosts determines what happens to a host on which several runs have failed.
type SickHosts string

// The values of [SickHosts].
const (
	ReportSickHosts SickHosts = "report"
	CordonSickHosts SickHosts = "cordon"
)

// AllSickHosts lists the values of [SickHosts].
var AllSickHosts = []string{string(ReportSickHosts), string(CordonSickHosts)}

// Preempting determines whether runs may preempt each other.
type Preempting string

// The values of [Preempting]. Empty means PreemptNever.
const (
	PreemptNever Preempting = "never"
	// PreemptLower lets a waiting run preempt runs of lower priority.
	PreemptLower Preempting = "lower-priority"
)

// Preemptings lists the values of [Preempting].
var Preemptings = []string{string(PreemptNever), string(PreemptLower)}

// CheckSettings returns why settings are invalid for a queue.
func (m *Machine) CheckSettings(e Set) error {
	switch {
	case e.Preempt != "" && !slices.Contains(Preemptings, string(e.Preempt)):
		return fmt.Errorf("preempt is %q; give one of %s", e.Preempt, shorten.List(Preemptings, maxNamed))
	case e.SickHosts != "" && !slices.Contains(AllSickHosts, string(e.SickHosts)):
		return fmt.Errorf("sick_hosts is %q; give one of %s", e.SickHosts, shorten.List(AllSickHosts, maxNamed))
	case e.LongestNotice < 0:
		return fmt.Errorf("the longest notice is %s; give a time such as 2m, or 0 for no limit", e.LongestNotice)
	}
	return nil
}

// Settings returns the queue's settings.
func (m *Machine) Settings() Settings {
	s := m.settings
	s.Preempt, s.SickHosts = cmp.Or(s.Preempt, PreemptNever), cmp.Or(s.SickHosts, ReportSickHosts)
	return s
}
