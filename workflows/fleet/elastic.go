package fleet

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// on returns an elastic run's demand on the given number of hosts. For any other run, it returns d.
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

// With returns an elastic run's demand when left of its hosts remain. If these are enough, the run
// continues on them immediately or, if it may grow, on as many hosts as are free. If they are not
// enough, or if the run is not elastic, With returns d.
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

// offer returns the places for a run that can start now, or nil. An elastic run that fits on enough
// hosts, but not on its maximum, waits for more until r.begins.
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

// begins returns when an elastic run stops waiting for more hosts.
func (r *run) begins() time.Time { return r.Enough.Add(r.Demand.JoinWait) }

// most returns an elastic run's places on as many hosts as are free. places are its places on the
// minimum number of hosts.
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

// whyJoining returns why an elastic run waits although it could start on its minimum.
func (p *planner) whyJoining(r *run) string {
	return fmt.Sprintf("%s on each of %d hosts, or fewer but at least %d, from %s on: %s",
		units.Count(r.Demand.PerHost, "slot", "slots"), r.Demand.MaxHosts, r.Demand.MinHosts, r.begins().UTC().Format("2006-01-02 15:04:05 UTC"), p.missing(r))
}
