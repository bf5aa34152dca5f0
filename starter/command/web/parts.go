package web

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/runrecord"
)

// partsTake limits reading a run's history, and its tasks' files.
const partsTake = 10 * time.Second

// runParts holds those parts of a run's page that take the longest. The page omits those that
// cannot be read in time.
type runParts struct {
	account *runrecord.Account
	rounds  []barriers.Round
	metrics []page.Metric
	noSpec  string
	// lasts reports whether they will not change, or took long.
	lasts bool
}

// addParts adds the spec, the time line and the metrics to a run's page,
// if they are known in time.
func (s *Server) addParts(ctx context.Context, p *page.RunPage, run *starter.Run, status *starter.Status, until time.Time) (known bool) {
	// A run's last page is not refreshed, so it must contain the parts of an ended run.
	key := fmt.Sprintf("%s\x00%t", keyOf(run), status.Open)
	parts, _, err := s.parts.get(ctx, key, time.Until(until), func(ctx context.Context) (*runParts, error) {
		return readParts(ctx, run, status), nil
	})
	if err != nil {
		return false
	}
	p.Metrics = parts.metrics
	account := *parts.account
	account.Status = status
	p.AddAccount(&account, parts.rounds)
	p.NoSpec = parts.noSpec
	return true
}

func readParts(ctx context.Context, run *starter.Run, status *starter.Status) *runParts {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, partsTake)
	defer cancel()
	parts := &runParts{}
	var done sync.WaitGroup
	done.Go(func() {
		files := run.Files(status)
		defer files.Close()
		histories, _ := runrecord.Metrics(ctx, files, status.Tasks) // the page has the rest
		parts.metrics = page.NewMetrics(histories)
	})
	started, err := run.Spec(ctx)
	if err != nil {
		parts.noSpec = "Cannot read the spec: " + err.Error()
	}
	histories, _ := runrecord.History(ctx, run)
	parts.account = runrecord.New(withoutLogs(status), started, histories)
	parts.rounds, _ = barriers.Closed(ctx, run)
	done.Wait()
	parts.lasts = !status.Open || time.Since(began) > partsTake/20
	return parts
}

// withoutLogs returns a status without log directories, because the page does not use anything that
// an account reads from them.
func withoutLogs(of *starter.Status) *starter.Status {
	status := *of
	status.Tasks = slices.Clone(of.Tasks)
	for i := range status.Tasks {
		status.Tasks[i].LogDir = ""
	}
	return &status
}
