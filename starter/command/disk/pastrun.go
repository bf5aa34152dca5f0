package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

// openPast opens a log directory. If dir is empty, it opens the one in the state directory, and
// returns nil if there is none.
func openPast(a *cli.App, dir string) (*retention.Past, error) {
	l, err := retention.OpenLogs(cmp.Or(dir, a.LogsDir()))
	if errors.Is(err, fs.ErrNotExist) && dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	return &retention.Past{Logs: l, Home: a.Global.StateDir, Holds: workers.Holds}, nil
}

// pastRun describes an execution of a run on this host, on the server, or both.
type pastRun struct {
	RunID, ExecutionID string
	entry              *retention.Entry // nil if the run has no files on this host
	facts              retention.Facts
	known              bool // whether the server knows the run
}

// pastRuns lists this state directory's runs that have files here.
func pastRuns(p *retention.Past) ([]*pastRun, error) {
	if p == nil {
		return nil, nil
	}
	entries, err := p.Entries()
	var runs []*pastRun
	for _, e := range entries {
		if p.Mine(e) {
			runs = append(runs, newPastRun(p, e))
		}
	}
	return runs, err
}

func newPastRun(p *retention.Past, e retention.Entry) *pastRun {
	return &pastRun{RunID: e.RunID, ExecutionID: e.Note.Run.RunID, entry: &e, facts: p.Facts(e, true)}
}

// askServer completes the facts about runs with the server's.
func askServer(ctx context.Context, c client.Client, runs []*pastRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	background.Each(8, runs, func(_ int, r *pastRun) {
		if r.ExecutionID == "" {
			return
		}
		s, err := starter.Get(c, r.RunID, r.ExecutionID).Summary(ctx)
		switch {
		case err == nil && s.ExecutionID == r.ExecutionID:
			r.setSummary(s)
		case err != nil && !starter.IsError[*starter.NotFoundError](err):
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// setSummary adds the server's facts.
func (r *pastRun) setSummary(s starter.Summary) {
	r.known = true
	r.facts.Server = retention.Open
	if !s.Open {
		r.facts.Server, r.facts.Ended = retention.Closed, s.Ended
	}
}

// remove removes a run's files from this host and, if its arguments request that, the run from
// the server.
func (r *pastRun) remove(ctx context.Context, p *retention.Past, c client.Client, namespace string) (workflows int, err error) {
	if r.entry != nil {
		if err := p.Remove(*r.entry, r.facts.Server); err != nil {
			return 0, err
		}
	}
	if c == nil || !r.known {
		return 0, nil
	}
	return deleteRun(ctx, starter.Get(c, r.RunID, r.ExecutionID), namespace)
}
