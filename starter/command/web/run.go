package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
)

const (
	// soon is how soon an incomplete page repeats its request.
	soon = 500 * time.Millisecond
	// stale is the age of facts that a page marks as old.
	stale = 2 * most
)

// runFacts holds the changing facts about a run.
type runFacts struct {
	status   *starter.Status
	barriers []barriers.Barrier
}

// run returns the run that a request is for.
func (s *Server) run(r *http.Request) (*starter.Run, error) {
	id := r.PathValue("id")
	if err := cli.CheckRun(id); err != nil {
		return nil, err
	}
	return starter.Get(s.Client, id, r.URL.Query().Get("execution")), nil
}

// keyOf returns a run's key in facts.
func keyOf(run *starter.Run) string { return run.ID + "\x00" + run.ExecutionID }

func (s *Server) factsOf(ctx context.Context, run *starter.Run) (*runFacts, time.Time, error) {
	return s.runs.get(ctx, keyOf(run), patience, func(ctx context.Context) (*runFacts, error) {
		status, err := run.Status(ctx)
		if err != nil {
			return nil, err
		}
		f := &runFacts{status: status}
		if status.Open {
			f.barriers, _ = barriers.Open(ctx, run) // the page has the rest
		}
		return f, nil
	})
}

// showRun shows a run. The page does not wait for slow hosts or a slow server. Instead, it omits
// what is still unknown, and soon repeats the request.
func (s *Server) showRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.run(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	began := time.Now()
	f, at, err := s.factsOf(r.Context(), run)
	if err != nil && !errors.Is(err, errPending) {
		s.fail(w, err)
		return
	}
	p, isWhole := &page.RunPage{Status: &starter.Status{RunID: run.ID, Open: true}, State: "requested", Tone: page.Waits}, false
	if err == nil {
		p, isWhole = s.knownRun(r, run, f, at, began.Add(patience))
	} else {
		p.Notices = []outcome.Fact{{Severity: outcome.Waits, Text: "The server is taking longer than usual to answer for this run."}}
	}
	p.Frame = s.frame("Runs", run.ID, at)
	p.TemporalURL = s.temporalURL(workflowPath(run.ID, run.ExecutionID))
	if p.Open {
		p.Refresh = pause(time.Since(began))
	}
	if !isWhole {
		p.Refresh, p.Partial = soon, true
	}
	writeHTML(w, http.StatusOK)
	_ = page.RenderRun(w, p, page.Live)
}

// knownRun returns a run's page without its frame. isWhole reports whether it is complete; it
// omits parts that are unknown at the given time.
func (s *Server) knownRun(r *http.Request, run *starter.Run, f *runFacts, at, until time.Time) (p *page.RunPage, isWhole bool) {
	p = page.NewRun(f.status, f.barriers, at)
	p.Tasks.Filter = taskFilter(r)
	if f.status.Sweep != nil {
		isWhole = s.addSweep(r.Context(), p, run, f.status, r.URL.Query().Get("sort"), until)
	} else {
		hasParts := s.addParts(r.Context(), p, run, f.status, until)
		hasOutput := s.addOutput(r.Context(), p, run, f.status, parseOutputQuery(r.URL.Query()), until)
		isWhole = hasParts && hasOutput
	}
	if found := s.stacks.last(keyOf(run)); found.Total > 0 && f.status.Open {
		p.Stacks = &found
	}
	if age := time.Since(at); p.Open && age > stale {
		p.Notices = append([]outcome.Fact{{Severity: outcome.Warning, Text: fmt.Sprintf("The server has not answered for %s. The page shows its last answer.", cli.Roughly(age))}}, p.Notices...)
	}
	if note := s.notes.last(r.URL.Query().Get("note")); note.Text != "" {
		p.Notices = append([]outcome.Fact{note}, p.Notices...)
	}
	if p.Open && !s.ReadOnly {
		p.Actions = actionsOf(f.status)
	}
	return p, isWhole
}

// taskFilter returns a request's task selection.
func taskFilter(r *http.Request) page.TaskFilter {
	q := r.URL.Query()
	f := page.TaskFilter{State: q.Get("state"), Host: q.Get("host")}
	_, _ = fmt.Sscanf(q.Get("page"), "%d", &f.Page)
	f.Page = max(0, f.Page)
	return f
}
