package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/page/model"
)

// runFacts are the facts about a run that change.
type runFacts struct {
	status   *starter.Status
	barriers []starter.Barrier
}

// specText is the spec of a run as YAML, or why there is none.
type specText struct{ yaml, why string }

// run returns the run of a request.
func (s *Server) run(r *http.Request) (*starter.Run, error) {
	id := r.PathValue("id")
	if err := cli.CheckRun(id); err != nil {
		return nil, err
	}
	return starter.Get(s.Client, id, r.URL.Query().Get("execution")), nil
}

// keyOf returns the key of a run among facts.
func keyOf(run *starter.Run) string { return run.ID + "\x00" + run.ExecutionID }

func (s *Server) factsOf(ctx context.Context, run *starter.Run) (*runFacts, time.Time, error) {
	return s.runs.get(ctx, keyOf(run), func(ctx context.Context) (*runFacts, error) {
		status, err := run.Status(ctx)
		if err != nil {
			return nil, err
		}
		f := &runFacts{status: status}
		if status.Open {
			f.barriers, _ = run.Barriers(ctx) // the page has the rest
		}
		return f, nil
	})
}

func (s *Server) specOf(ctx context.Context, run *starter.Run, status *starter.Status) specText {
	text, _, err := s.specs.get(ctx, status.RunID+"\x00"+status.ExecutionID, func(ctx context.Context) (specText, error) {
		of, err := run.Spec(ctx)
		if err != nil {
			return specText{}, err
		}
		hidden := of.WithoutSecrets()
		hidden.Signature = nil
		yaml, err := hidden.YAML()
		return specText{yaml: string(yaml)}, err
	})
	if err != nil {
		text.why = "Its spec cannot be read: " + err.Error()
	}
	return text
}

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.run(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	began := time.Now()
	f, at, err := s.factsOf(r.Context(), run)
	if err != nil {
		s.fail(w, err)
		return
	}
	p := model.Run{Status: f.status, Barriers: f.barriers}.Page(at)
	p.Frame = s.frame("Runs", run.ID, at)
	p.TemporalURL = workflowURL(s.temporalBase(), s.Namespace, run.ID, run.ExecutionID)
	p.Tasks.Filter = taskFilter(r)
	p.Output = s.outputOf(r.Context(), run, f.status, p.Tasks, parseOutputQuery(r.URL.Query()))
	if found, ok := s.stacks.get(keyOf(run)); ok && f.status.Open {
		p.Stacks = &found
	}
	s.addParts(r.Context(), p, run, f.status)
	text := s.specOf(r.Context(), run, f.status)
	p.Spec, p.NoSpec = text.yaml, text.why
	if note, ok := s.notes.get(r.URL.Query().Get("note")); ok {
		p.Notices = append([]page.Notice{note}, p.Notices...)
	}
	if f.status.Open {
		p.Refresh = pause(time.Since(began))
		if !s.ReadOnly {
			p.Actions = actionsOf(f.status)
		}
	}
	writeHTML(w, http.StatusOK)
	_ = page.RenderRun(w, p, page.Live)
}

// taskFilter returns the selection of tasks in a request.
func taskFilter(r *http.Request) page.TaskFilter {
	q := r.URL.Query()
	f := page.TaskFilter{State: q.Get("state"), Host: q.Get("host")}
	_, _ = fmt.Sscanf(q.Get("page"), "%d", &f.Page)
	f.Page = max(0, f.Page)
	return f
}
