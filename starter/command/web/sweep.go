package web

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// resultsTake limits how long the results of trials are read for one answer. The next answer
// continues.
const resultsTake = 3 * time.Second

// sweepFacts holds a sweep's trials.
type sweepFacts struct {
	page.Sweep
	spec *spec.RunSpec
	// lasts reports whether they will not change.
	lasts bool
}

// addSweep adds a sweep's trials to its page, if they are known in time. order is how the page
// sorts them.
func (s *Server) addSweep(ctx context.Context, p *page.RunPage, run *starter.Run, status *starter.Status, order string, until time.Time) (isWhole bool) {
	p.Sweep = &page.Sweep{}
	key := keyOf(run)
	f, _, err := s.sweeps.get(ctx, key, time.Until(until), func(ctx context.Context) (*sweepFacts, error) {
		return readSweep(ctx, run, status, s.sweeps.last(key))
	})
	if err != nil {
		return false
	}
	*p.Sweep = f.Sweep
	p.Sweep.Order, _ = sweep.ParseOrder(order) // otherwise they are not sorted
	p.AddSpec(f.spec)
	return f.Missing == 0
}

// readSweep reads a sweep's trials. It does not read results again that are in known, which may be
// nil.
func readSweep(ctx context.Context, run *starter.Run, status *starter.Status, known *sweepFacts) (f *sweepFacts, err error) {
	f = &sweepFacts{}
	if known == nil {
		of, err := run.SweepSpec(ctx)
		if err != nil {
			return nil, err
		}
		known = &sweepFacts{spec: of.Run}
	}
	f.spec = known.spec
	if f.Names, f.Trials, err = run.Trials(ctx, status); err != nil {
		return nil, err
	}
	run.DescribeTrials(ctx, f.Trials)
	ctx, cancel := context.WithTimeout(ctx, resultsTake)
	defer cancel()
	f.Missing = run.ReadTrials(ctx, f.Trials, known.Trials)
	f.lasts = !status.Open && f.Missing == 0
	return f, nil
}
