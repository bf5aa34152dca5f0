package disk

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// expand returns the IDs of the runs that args name. A pattern stands for the ended runs that
// the server knows or that have files here. matched counts the runs that only patterns name. c
// is nil if there is no server.
func expand(ctx context.Context, a *cli.App, c client.Client, args []string, logDir string) (ids []string, matched int, err error) {
	for _, arg := range args {
		found := []string{arg}
		if c != nil && !spec.IsPattern(arg) {
			id, err := starter.Find(ctx, c, arg)
			if err != nil && !starter.IsError[*starter.NotFoundError](err) { // it may have files here
				return nil, 0, err
			}
			arg = cmp.Or(id, arg)
			found[0] = arg
		}
		if spec.IsPattern(arg) {
			if found, err = matching(ctx, a, c, arg, logDir); err != nil {
				return nil, 0, err
			}
		}
		if c != nil && !spec.IsPattern(arg) {
			trials, err := trialsOf(ctx, c, arg)
			if err != nil {
				return nil, 0, err
			}
			ids = append(ids, trials...) // before the sweep, so that an interrupted rm can be repeated
		}
		for _, id := range found {
			if slices.Contains(ids, id) {
				continue
			}
			ids = append(ids, id)
			if id != arg {
				matched++
			}
		}
	}
	return ids, matched, nil
}

// listed is like [expand] for a server that answers only for its list. It does not find trials.
func listed(ctx context.Context, a *cli.App, c client.Client, args []string, logDir string) (ids []string, matched int, err error) {
	for _, arg := range args {
		found := []string{arg}
		if spec.IsPattern(arg) {
			if found, err = matching(ctx, a, c, arg, logDir); err != nil {
				return nil, 0, err
			}
			matched += len(found)
		}
		ids = append(ids, found...)
	}
	return ids, matched, nil
}

// trialsOf returns the IDs of a sweep's trials, or nil for another run. It refuses a sweep that
// is open or has open trials.
func trialsOf(ctx context.Context, c client.Client, id string) ([]string, error) {
	r := starter.Get(c, id, "")
	s, err := r.Summary(ctx)
	switch {
	case starter.IsError[*starter.NotFoundError](err): // it may have files here
		return nil, nil
	case err != nil:
		return nil, err
	case !s.Sweep:
		return nil, nil
	case s.Open:
		return nil, openError(id)
	}
	open, err := cli.TrialIDs(ctx, c, id, cli.OpenRuns)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 {
		return nil, openError(open[0])
	}
	return cli.TrialIDs(ctx, c, id, cli.EndedRuns)
}

// matching returns the IDs of the ended runs that match a pattern, on the server and here.
func matching(ctx context.Context, a *cli.App, c client.Client, pattern, logDir string) ([]string, error) {
	var ended, open []string
	if c != nil {
		var err error
		if open, err = cli.Matching(ctx, c, pattern, cli.OpenRuns); err != nil {
			return nil, err
		}
		if ended, err = cli.Matching(ctx, c, pattern, cli.EndedRuns); err != nil {
			return nil, err
		}
	}
	p, err := openPast(a, logDir)
	if err != nil {
		return nil, err
	}
	if p != nil {
		defer p.Close()
		entries, err := p.Entries()
		if err != nil {
			a.Say("some files cannot be read and were not removed: %s", err)
		}
		for _, e := range entries {
			matches, _ := path.Match(pattern, e.RunID) // already checked
			if matches && p.Mine(e) && !slices.Contains(open, e.RunID) && !slices.Contains(ended, e.RunID) {
				ended = append(ended, e.RunID)
			}
		}
	}
	switch {
	case len(ended) > 0 && len(open) > 0:
		a.Say("%s: leaving %s: %s", pattern, units.Count(len(open), "open run", "open runs"), shorten.List(open, 5))
	case len(open) > 0:
		return nil, fmt.Errorf("%s: all matching runs are open: %s; stop them with `clusterrun stop`", pattern, shorten.List(open, 5))
	case len(ended) == 0:
		return nil, fmt.Errorf("%s: no run matches; see `clusterrun list`", pattern)
	}
	return ended, nil
}
