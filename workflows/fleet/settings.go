package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Settings are a queue's user-defined rules.
type Settings struct {
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

// CheckSettings returns why settings are invalid for a queue.
func (m *Machine) CheckSettings(e Set) error {
	switch {
	case e.SickHosts != "" && !slices.Contains(AllSickHosts, string(e.SickHosts)):
		return fmt.Errorf("sick_hosts is %q; give one of %s", e.SickHosts, shorten.List(AllSickHosts, maxNamed))
	}
	return nil
}

// Settings returns the queue's settings.
func (m *Machine) Settings() Settings {
	s := m.settings
	s.SickHosts = cmp.Or(s.SickHosts, ReportSickHosts)
	return s
}
