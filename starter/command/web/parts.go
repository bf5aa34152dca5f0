package web

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/page/model"
	"github.com/clusterrun/clusterrun/starter/record"
)

// partsTake is the longest time for the history of a run, and for the files of its tasks.
const partsTake = 3 * time.Second

// runParts are the parts of the page of a run that take the longest. The page lacks those that
// cannot be read in time.
type runParts struct {
	account *record.Account
	rounds  []starter.Round
	series  []page.Series
	// lasts reports whether they will not change, or took long.
	lasts bool
}

// addParts adds the time line, the start of processes and the charts to the page of a run.
func (s *Server) addParts(ctx context.Context, p *page.RunPage, run *starter.Run, status *starter.Status) {
	// The last page of a run is not shown again, so it has the parts of an ended run.
	key := keyOf(run) + "\x00" + strconv.FormatBool(status.Open)
	parts, _, _ := s.parts.get(ctx, key, func(ctx context.Context) (*runParts, error) {
		return s.readParts(ctx, run, status, p.Tasks), ctx.Err()
	})
	if parts == nil {
		return // the browser has left
	}
	p.Series = parts.series
	if parts.account != nil {
		account := *parts.account
		account.Status = status
		model.AddAccount(p, &account, parts.rounds)
	}
}

func (s *Server) readParts(ctx context.Context, run *starter.Run, status *starter.Status, tasks page.Tasks) *runParts {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, partsTake)
	defer cancel()
	parts := &runParts{}
	var done sync.WaitGroup
	done.Go(func() { parts.series = model.ReadUsage(ctx, run, status, s.App.LogsDir(), tasks) })
	if histories, err := run.History(ctx); err == nil {
		parts.account = record.New(s.onlyHere(status), nil, histories)
		parts.rounds, _ = run.Rounds(ctx)
	}
	done.Wait()
	parts.lasts = !status.Open || time.Since(began) > partsTake/6
	return parts
}

// onlyHere returns a status without the log directories of other hosts, whose paths mean nothing
// on this machine.
func (s *Server) onlyHere(of *starter.Status) *starter.Status {
	status := *of
	status.Tasks = slices.Clone(of.Tasks)
	files := record.FilesOf(of, s.App.LogsDir())
	for i := range status.Tasks {
		if t := &status.Tasks[i]; !files.IsHere(t.Host, t.LogDir) {
			t.LogDir = ""
		}
	}
	return &status
}
