package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

func Rm(a *cli.App) *cobra.Command {
	var logDir string
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm [flags] RUN...",
		Short: "Remove runs with their logs and records",
		Args:  cli.SomeArgs(1, "RUN"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runRm(cmd.Context(), a, args, logDir, yes) },
	}
	logDirFlag(cmd, &logDir)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask if many runs match")
	return cmd
}

// runRm implements [Rm].
func runRm(ctx context.Context, a *cli.App, args []string, logDir string, yes bool) error {
	c, s, err := a.DialExisting(ctx)
	namespace := ""
	switch {
	case err == cli.ErrNoServer:
	case err != nil:
		return err
	default:
		defer c.Close()
		if namespace, err = cli.NamespaceOf(s); err != nil {
			return err
		}
	}
	ids, matched, err := expand(ctx, a, c, args, logDir)
	if err != nil {
		return err
	}
	if matched > cli.MostMatched && !yes {
		if err := a.Confirm(ids, "Remove them?", "nothing was removed"); err != nil {
			return err
		}
	}
	removed := []removal{}
	var errs []error
	for _, id := range ids {
		r, err := remove(ctx, a, c, namespace, id, logDir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, r)
		if !a.Global.JSON {
			fmt.Fprintf(a.Out, "removed: %s (%s, %s of the server)\n", id, shipped.Size(r.Bytes), plural.Of(r.Workflows, "workflow", "workflows"))
		}
	}
	if a.Global.JSON {
		errs = append(errs, a.PrintJSON(removed))
	}
	return errors.Join(errs...)
}

// removal describes what was removed of a run.
type removal struct {
	RunID     string `json:"run_id"`
	Bytes     int64  `json:"bytes"`
	Workflows int    `json:"workflows"`
}

func remove(ctx context.Context, a *cli.App, c client.Client, namespace, id, logDir string) (removal, error) {
	done := removal{RunID: id}
	dirs := []string{logDir}
	var known bool
	if c != nil {
		s, err := starter.Get(c, id, "").Summary(ctx)
		if err != nil && !starter.IsError[*starter.NotFoundError](err) {
			return done, err
		}
		if known = err == nil; known && s.Open {
			return done, &starter.OpenError{RunID: id}
		}
		if known {
			its, err := logDirsOf(ctx, c, id, "")
			if err != nil {
				return done, err
			}
			dirs = append(dirs, slices.DeleteFunc(its, func(dir string) bool { return dir == a.LogsDir() || !opens(dir) })...)
		}
	}
	found := known
	for _, dir := range slices.Compact(dirs) {
		p, err := openPast(a, dir)
		if err != nil {
			return done, err
		}
		if p == nil {
			continue
		}
		runs, err := removeFrom(ctx, p, c, id)
		p.Close()
		for _, r := range runs {
			done.Bytes += r.Bytes
			found = true
		}
		if err != nil {
			return done, err
		}
	}
	switch {
	case !found && c == nil:
		return done, fmt.Errorf("there is nothing of run %s here", id)
	case !found:
		return done, &starter.NotFoundError{RunID: id}
	case !known:
		return done, nil
	}
	var err error
	done.Workflows, err = starter.Get(c, id, "").Delete(ctx, namespace)
	return done, err
}

// logDirsOf returns the log directories that an execution of a run was given, as its status
// lists them; execution "" is the latest. Some may be on other hosts.
func logDirsOf(ctx context.Context, c client.Client, id, execution string) (dirs []string, err error) {
	s, err := starter.Get(c, id, execution).Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range s.Tasks {
		runDir, _, _, ok := tasklog.SplitProcessDir(t.LogDir)
		dir := filepath.Dir(filepath.Dir(runDir))
		if ok && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// opens reports whether a log directory exists and can be read.
func opens(dir string) bool {
	l, err := retention.OpenLogs(dir)
	if err == nil {
		l.Close()
	}
	return err == nil
}

const (
	// settleTakes is the longest time for the host worker to notice that a run has ended.
	settleTakes = 10 * time.Second
	settleEvery = 200 * time.Millisecond
)

// removeFrom removes the files of a run from one log directory.
func removeFrom(ctx context.Context, p *retention.Past, c client.Client, id string) (removed []*pastRun, err error) {
	if err := p.Lock(); err != nil {
		return nil, err
	}
	until := time.Now().Add(settleTakes)
	for {
		entries, err := p.EntriesOf(id)
		if err != nil {
			return nil, err
		}
		var runs []*pastRun
		for _, e := range entries {
			r := newPastRun(p, e)
			switch {
			case e.Note == nil:
				return nil, fmt.Errorf("no note says whose logs %s are; remove them by hand", r.Logs)
			case !e.Note.IsOfThisHost():
				return nil, fmt.Errorf("the logs %s belong to the state directory %s of another host; remove them there", r.Logs, filepath.Dir(e.Note.State))
			case !p.Mine(e):
				return nil, fmt.Errorf("the logs %s belong to the state directory %s; name it with --state-dir", r.Logs, filepath.Dir(e.Note.State))
			case e.Kept:
				return nil, fmt.Errorf("run %s is kept; `clusterrun keep --off %s` ends that", id, id)
			}
			runs = append(runs, r)
		}
		if c != nil {
			if err := askServer(ctx, c, runs); err != nil {
				return nil, err
			}
		}
		living := slices.IndexFunc(runs, func(r *pastRun) bool { return r.facts.Alive() != "" })
		if living >= 0 {
			r := runs[living]
			// The run has ended on the server, but its host worker checks that only every few
			// seconds.
			if r.facts.Server == retention.Closed && time.Now().Before(until) && retry.Sleep(ctx, settleEvery) == nil {
				continue
			}
			return nil, fmt.Errorf("run %s %s; `clusterrun stop %s` ends it", id, r.facts.Alive(), id)
		}
		for _, r := range runs {
			if err := p.Remove(*r.entry, r.facts.Server); err != nil {
				return removed, err
			}
			removed = append(removed, r)
		}
		return removed, nil
	}
}
