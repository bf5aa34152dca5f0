package starter

import (
	"context"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// HostDetails is all that is known of a host.
type HostDetails struct {
	fleet.HostStatus
	// Results are the last results of its checks. A silent host has none.
	Results []fleet.CheckResult `json:"results,omitempty"`
	// History says how runs have ended there, by day, the latest first.
	History []fleet.Day `json:"history,omitempty"`
}

// Host returns the details of the host of that name.
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
	// Its lease is an activity of the fleet, whose heartbeats have the results.
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
	d.History, err = queryFleet[[]fleet.Day](ctx, f, spec.QueryHostHistory, name)
	return d, err
}
