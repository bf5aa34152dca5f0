package disk

import (
	"context"
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// removeOld removes a log directory's runs that ended long ago.
func removeOld(ctx context.Context, a *cli.App, o *rmOptions) error {
	before, err := cli.ParseTime("--older-than", o.olderThan, time.Now())
	if err != nil {
		return err
	}
	p, err := openPast(a, o.logDir)
	if err != nil {
		return err
	}
	if p != nil {
		defer p.Close()
		if !o.dryRun {
			if err := p.Lock(); err != nil {
				return err
			}
		}
	}
	runs, err := pastRuns(p)
	if err != nil {
		a.Say("some files cannot be read and were not removed: %s", err)
	}
	c, namespace, runs, err := withServer(ctx, a, runs, before)
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
	}
	going := choose(retention.Rule{Before: before}, runs)
	if len(going) > 0 && !o.yes && !o.dryRun {
		if err := a.Confirm(list.Of(going, func(r *pastRun) string { return r.RunID }), "Remove them?", "nothing was removed"); err != nil {
			return err
		}
	}
	done := removals{Runs: []removal{}, DryRun: o.dryRun}
	var errs []error
	for _, r := range going {
		gone := removal{RunID: r.RunID, Bytes: r.facts.Bytes}
		if !o.dryRun {
			if gone.Workflows, err = r.remove(ctx, p, c, namespace); err != nil {
				errs = append(errs, fmt.Errorf("run %s: %w", r.RunID, err))
				continue
			}
		}
		done.add(a, gone)
	}
	return done.end(a, errs)
}

// choose returns the runs that the rule removes.
func choose(rule retention.Rule, runs []*pastRun) []*pastRun {
	facts := list.Of(runs, func(r *pastRun) retention.Facts { return r.facts })
	var going []*pastRun
	for i, why := range rule.Choose(facts) {
		if why == "" {
			going = append(going, runs[i])
		}
	}
	return going
}

// withServer completes runs with the server's facts, and adds runs that only the embedded server
// has. For any other server it returns a nil client, because such a server deletes runs itself.
func withServer(ctx context.Context, a *cli.App, runs []*pastRun, before time.Time) (client.Client, string, []*pastRun, error) {
	c, s, err := a.DialExisting(ctx)
	if err == cli.ErrNoServer {
		return nil, "", runs, nil
	}
	if err == nil {
		err = askServer(ctx, c, runs)
	}
	if err != nil {
		if c != nil {
			c.Close()
		}
		a.Say("the server does not answer, so the runs remain on it for now: %s", err)
		return nil, "", runs, nil
	}
	if !s.Embedded {
		c.Close()
		return nil, "", runs, nil
	}
	namespace, err := cli.NamespaceOf(s)
	if err != nil {
		return nil, "", nil, err
	}
	all, err := starter.List(ctx, c, starter.ListOptions{Until: before, Limit: math.MaxInt32})
	if err != nil {
		c.Close()
		return nil, "", nil, err
	}
	here := map[string]bool{}
	for _, r := range runs {
		here[r.RunID+"\x00"+r.ExecutionID] = true
	}
	for _, listed := range all {
		if listed.Open || !listed.Ended.Before(before) {
			continue
		}
		// The list contains each run's last execution.
		summary, err := starter.Get(c, listed.RunID, listed.ExecutionID).Summary(ctx)
		if err != nil || here[listed.RunID+"\x00"+summary.ExecutionID] {
			continue
		}
		r := &pastRun{RunID: listed.RunID, ExecutionID: summary.ExecutionID}
		r.setSummary(summary)
		runs = append(runs, r)
	}
	return c, namespace, runs, nil
}
