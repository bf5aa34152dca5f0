package starter

import (
	"context"
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// HostDetails is all that is known of a host.
type HostDetails struct {
	fleet.HostStatus
	// Results are the last results of its checks. There are none if it is silent.
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
		return nil, &RefusedError{Reason: noHost(f.Queue, name, hosts), Invalid: true}
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

func noHost(queue, name string, hosts []fleet.HostStatus) string {
	const most = 5
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	text := fmt.Sprintf("no host %q in the queue %s", name, queue)
	if len(names) > 0 {
		text += "; it has " + shorten.List(names, most)
	}
	return text
}
