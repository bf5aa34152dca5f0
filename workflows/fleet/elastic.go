package fleet

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// on returns the demand of an elastic run on so many hosts. For other runs it returns d.
func (d Demand) on(hosts int) Demand {
	if !d.Elastic {
		return d
	}
	d.MinHosts, d.MaxHosts = hosts, hosts
	groups, left := d.Groups, hosts*d.PerHost
	d.Groups = nil
	for _, g := range groups {
		if g.Tasks = min(g.Tasks, left); g.Tasks > 0 {
			d.Groups = append(d.Groups, g)
			left -= g.Tasks
		}
	}
	return d
}

// With returns the demand of an elastic run that has so many hosts left. If these are enough,
// it continues at once, with them or, if it grows, with as many as there is room on. Otherwise,
// and for other runs, With returns d.
func (d Demand) With(left int, grow spec.Grow) Demand {
	if !d.Elastic || left < d.MinHosts {
		return d
	}
	d.JoinWait = 0
	if grow != spec.GrowNextGeneration {
		d.MaxHosts = left
	}
	return d
}

// offer returns the places of a run that can start now, or nil. An elastic run that has room on
// enough hosts, but not on all, waits for more until it begins.
func (p *planner) offer(r *run) []place {
	places := p.try(r)
	switch {
	case !r.Demand.Elastic:
		return places
	case places == nil:
		r.Enough = time.Time{}
		return nil
	case r.Enough.IsZero():
		r.Enough = p.now
	}
	places = p.most(r, places)
	if len(places) < r.Demand.MaxHosts && p.now.Before(r.begins()) {
		return nil
	}
	return places
}

// begins returns the time from which an elastic run no longer waits for more hosts.
func (r *run) begins() time.Time { return r.Enough.Add(r.Demand.JoinWait) }

// most returns the places of an elastic run on as many hosts as there is room on; it has
// found places on the fewest.
func (p *planner) most(r *run, places []place) []place {
	least := r.shape
	for fewest, most := r.Demand.MinHosts, r.Demand.MaxHosts; fewest < most; {
		n := (fewest + most + 1) / 2
		r.shape = shapeOf(r.Demand.on(n))
		if more := p.try(r); more != nil {
			places, fewest = more, n
		} else {
			most = n - 1
		}
	}
	r.shape = least
	return places
}

// whyJoining returns the reason why an elastic run that has room on enough hosts waits.
func (p *planner) whyJoining(r *run) string {
	return fmt.Sprintf("%s on each of %d hosts, or fewer, but at least %d, from %s on: %s",
		plural.Of(r.Demand.PerHost, "slot", "slots"), r.Demand.MaxHosts, r.Demand.MinHosts, r.begins().UTC().Format("2006-01-02 15:04:05 UTC"), p.missing(r))
}
