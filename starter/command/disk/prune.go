package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func Prune(a *cli.App) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [flags] --older-than TIME",
		Short: "Remove the logs of runs that ended long ago",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runPrune(cmd.Context(), a, &o) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.olderThan, "older-than", "", "remove runs that ended more than `TIME` ago, such as 30d, or before a time such as 2026-01-31")
	fs.BoolVar(&o.keepFailed, "keep-failed", false, "leave runs that failed, timed out or were terminated")
	fs.BoolVar(&o.dryRun, "dry-run", false, "only list what would be removed")
	fs.BoolVar(&o.yes, "yes", false, "do not ask")
	logDirFlag(cmd, &o.logDir)
	return cmd
}

// pruneOptions are the flags of [Prune].
type pruneOptions struct {
	olderThan, logDir       string
	keepFailed, dryRun, yes bool
}

// runPrune implements [Prune].
func runPrune(ctx context.Context, a *cli.App, o *pruneOptions) error {
	if o.olderThan == "" {
		return cli.Usagef("say how old runs have to be: --older-than 30d")
	}
	before, err := cli.ParseTime("--older-than", o.olderThan, time.Now())
	if err != nil {
		return err
	}
	asks := !o.yes && !o.dryRun
	if asks {
		if err := a.CanAsk("give --yes, or --dry-run to see what would be removed"); err != nil {
			return err
		}
	}
	return prune(ctx, a, o, retention.Rule{Before: before, KeepFailed: o.keepFailed}, asks)
}

// prune removes the runs that the rule chooses, if asks is set with the permission of the user.
func prune(ctx context.Context, a *cli.App, o *pruneOptions, rule retention.Rule, asks bool) error {
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
		a.Say("some files cannot be read, and are not removed: %s", err)
	}
	c, namespace, runs, err := withServer(ctx, a, runs, rule, o.logDir)
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
	}
	going := choose(rule, runs)
	if o.dryRun {
		return printPruned(a, going, true)
	}
	if asks && len(going) > 0 {
		listPruned(a, going)
		if err := a.Ask("Remove them?", "nothing was removed"); err != nil {
			return err
		}
	}
	var gone []*pastRun
	var errs []error
	for _, r := range going {
		if _, err := r.remove(ctx, p, c, namespace); err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", r.RunID, err))
			continue
		}
		gone = append(gone, r)
	}
	return errors.Join(append(errs, printPruned(a, gone, false))...)
}

// choose returns the runs to remove.
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

// withServer completes runs with the facts from the server, and adds runs that only the
// embedded server has. For any other server it returns a nil client, because that forgets runs
// by itself.
func withServer(ctx context.Context, a *cli.App, runs []*pastRun, rule retention.Rule, logDir string) (client.Client, string, []*pastRun, error) {
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
		a.Say("the server does not answer, so it does not forget the runs now: %s", err)
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
	all, err := starter.List(ctx, c, starter.ListOptions{Until: rule.Before, Limit: math.MaxInt32})
	var doubts []error
	here := map[string]bool{}
	for _, r := range runs {
		here[r.RunID+"\x00"+r.ExecutionID] = true
	}
	for _, listed := range all {
		if listed.Open || !listed.Ended.Before(rule.Before) {
			continue
		}
		// The list contains the last execution of each run.
		r := &pastRun{RunID: listed.RunID, ExecutionID: listed.ExecutionID}
		summary, sumErr := starter.Get(c, listed.RunID, listed.ExecutionID).Summary(ctx)
		if sumErr != nil || here[r.RunID+"\x00"+summary.ExecutionID] {
			continue
		}
		r.ExecutionID = summary.ExecutionID
		r.setSummary(summary)
		its, doubt := logDirsOf(ctx, c, listed.RunID, listed.ExecutionID)
		if doubt == nil {
			r.facts.Kept, doubt = keeps(a, logDir, r, its)
		}
		if doubt != nil {
			doubts = append(doubts, fmt.Errorf("run %s: %w", r.RunID, doubt))
			continue
		}
		runs = append(runs, r)
	}
	if len(doubts) > 0 {
		a.Say("the server does not forget %s that may be kept: %s", plural.Of(len(doubts), "run", "runs"), doubts[0])
	}
	if err != nil {
		c.Close()
		return nil, "", nil, err
	}
	return c, namespace, runs, nil
}

// keeps reports whether an execution is kept in one of its log directories on this host, or in
// the log directory that is pruned. It fails if it cannot read one of them, because the mark
// may be there.
func keeps(a *cli.App, logDir string, r *pastRun, its []string) (bool, error) {
	_, execution := filepath.Split(tasklog.RunDir("", r.RunID, r.ExecutionID))
	for _, dir := range append(its, a.LogsDir(), cmp.Or(logDir, a.LogsDir())) {
		l, err := retention.OpenLogs(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		entries, err := l.EntriesOf(r.RunID)
		l.Close()
		if err != nil {
			return false, fmt.Errorf("%s: %w", dir, err)
		}
		if slices.ContainsFunc(entries, func(e retention.Entry) bool { return e.Execution == execution && e.Kept }) {
			return true, nil
		}
	}
	return false, nil
}

// printPruned prints the runs that were removed, or that would be.
func printPruned(a *cli.App, runs []*pastRun, dryRun bool) error {
	var bytes int64
	for _, r := range runs {
		bytes += r.Bytes
	}
	if a.Global.JSON {
		if runs == nil {
			runs = []*pastRun{}
		}
		return a.PrintJSON(map[string]any{"runs": runs, "bytes": bytes, "dry_run": dryRun})
	}
	did := "removed"
	if dryRun {
		did = "would remove"
	}
	listPruned(a, runs)
	a.Say("%s %s with %s", did, plural.Of(len(runs), "run", "runs"), shipped.Size(bytes))
	return nil
}

func listPruned(a *cli.App, runs []*pastRun) {
	if len(runs) == 0 {
		return
	}
	w := cli.NewTable(a.Out, "RUN", "EXECUTION", "ENDED ("+time.Now().Format("MST")+")", "SIZE")
	for _, r := range runs {
		w.Row(r.RunID, spec.ShortRunID(r.ExecutionID), r.Ended.Local().Format("2006-01-02 15:04:05"), shipped.Size(r.Bytes))
	}
	w.Flush()
}
