package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/fleet"
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
	for _, h := range found.hosts {
		p.Hosts = append(p.Hosts, hostRow(h))
	}
	for i, run := range found.waiting {
		if i == maxWaiting {
			p.MoreWaiting = len(found.waiting) - maxWaiting
			break
		}
		p.Waiting = append(p.Waiting, page.WaitingRow{
			Position: run.Position, Run: runLink(run.Run), Tasks: run.Tasks, Priority: run.Priority, Since: run.Since, Why: "waits for " + run.Why, Begins: run.Begins,
		})
	}
	writeHTML(w, http.StatusOK)
	_ = page.RenderHosts(w, p)
}

func runLink(run fleet.Run) page.Link {
	return page.Link{Text: run.WorkflowID, URL: page.RunURL(run.WorkflowID)}
}

func hostRow(h fleet.HostStatus) page.HostRow {
	row := page.HostRow{
		Name: h.Name, RunsURL: "/?" + url.Values{"host": {h.Name}}.Encode(),
		State: string(h.State), Since: h.Since, Reason: h.Reason, Deadline: h.Deadline,
		Used: h.Used, Slots: h.Slots, UsedGPUs: h.UsedGPUs, GPUs: len(h.GPUs), CPUs: h.CPUs, Memory: h.Memory, Version: h.Version,
	}
	switch h.State {
	case fleet.HostReady:
		row.Tone = page.Good
	case fleet.HostSilent:
		row.Tone = page.Bad
	default:
		row.Tone = page.Warning
	}
	if len(h.GPUs) > 0 {
		row.Model = h.GPUs[0].Model
	}
	for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
		row.Labels = append(row.Labels, key+"="+h.Labels[key])
	}
	for _, name := range h.Checks {
		check := page.HostCheck{Name: name, Tone: page.Good}
		if i := slices.IndexFunc(h.Failing, func(f fleet.FailedCheck) bool { return f.Check == name }); i >= 0 {
			check.Failed, check.Tone = h.Failing[i].Reason, page.Bad
		}
		row.Checks = append(row.Checks, check)
	}
	for _, held := range h.Holds {
		row.Holds = append(row.Holds, page.Held{Run: runLink(held.Run), Tasks: held.Tasks, Exclusive: held.Exclusive})
	}
	return row
}
