package starter

import (
	"context"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// HostDetails is everything known about a host.
type HostDetails struct {
	fleet.HostStatus
	// Results holds the last results of the host's checks. It is empty for a silent host.
	Results []fleet.CheckResult `json:"results,omitempty"`
}

// Host returns the named host's details.
func (f *Fleet) Host(ctx context.Context, name string) (*HostDetails, error) {
	hosts, err := f.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(hosts, func(h fleet.HostStatus) bool { return h.Name == name })
	if i < 0 {
		there := list.Of(hosts, func(h fleet.HostStatus) string { return h.Name })
		return nil, &RefusedError{Reason: fleet.UnknownHost(name, there), Invalid: true}
	}
	d := &HostDetails{HostStatus: hosts[i]}
	// The host's lease is a fleet activity, and its heartbeats carry the results.
	described, err := f.client.DescribeWorkflowExecution(ctx, spec.FleetID(f.Queue), "")
	if err != nil {
		return nil, f.requestError(err)
	}
	for _, a := range described.GetPendingActivities() {
		var beat fleet.HostBeat
		if a.GetActivityType().GetName() == spec.ActivityHostLease && decode(a.GetHeartbeatDetails(), &beat) && beat.Host == name {
			d.Results = beat.Checks
		}
	}
	return d, nil
}
