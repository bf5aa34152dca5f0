package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// maxWaiting is the maximum number of waiting runs on a page.
const maxWaiting = 200

// fleetFacts holds a queue's hosts.
type fleetFacts struct {
	hosts   []fleet.HostStatus
	waiting []fleet.Waiting
}

func (s *Server) showHosts(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	found, at, err := s.fleets.get(r.Context(), s.Queue, askedFor, func(ctx context.Context) (f fleetFacts, err error) {
		hosts := starter.GetFleet(s.Client, s.Queue)
		if f.hosts, err = hosts.Hosts(ctx); err == nil {
			f.waiting, err = hosts.Waiting(ctx)
		}
		if err != nil && cli.Unserved(ctx, s.Client, s.Queue) {
			err = errors.New(cli.NobodyServes(s.Queue))
		}
		return f, err
	})
	if errors.Is(err, context.Canceled) {
		return
	}
	p := &page.HostsPage{Frame: s.frame("Hosts", "Hosts", at), Queue: s.Queue}
	p.Refresh = pause(time.Since(began))
	if err != nil {
		p.Problem = err.Error()
	}
	p.Hosts = list.Of(found.hosts, func(h fleet.HostStatus) page.Host { return page.Host{HostStatus: h} })
	p.Waiting = found.waiting[:min(len(found.waiting), maxWaiting)]
	p.MoreWaiting = len(found.waiting) - len(p.Waiting)
	writeHTML(w, http.StatusOK)
	_ = page.RenderHosts(w, p)
}
