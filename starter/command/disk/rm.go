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
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

func Rm(a *cli.App) *cobra.Command {
	var o rmOptions
	cmd := &cobra.Command{
		Use:   "rm [flags] RUN... | --older-than TIME",
		Short: "Remove runs with their logs and records",
		RunE:  func(cmd *cobra.Command, args []string) error { return runRm(cmd.Context(), a, args, &o) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.olderThan, "older-than", "", "remove runs that ended more than `TIME` ago, such as 30d, or before a time such as 2026-01-31")
	fs.BoolVar(&o.dryRun, "dry-run", false, "only list what would be removed and how much space that would free")
	fs.BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
	fs.StringVar(&o.logDir, "log-dir", "", "the log `DIRECTORY` of a run or a worker, if it is not the default: logs, in the state directory")
	return cmd
}

// rmOptions holds the flags of [Rm].
type rmOptions struct {
	olderThan, logDir string
	dryRun, yes       bool
}

// runRm implements [Rm].
func runRm(ctx context.Context, a *cli.App, args []string, o *rmOptions) error {
	switch {
	case o.olderThan == "" && len(args) == 0:
		return cli.Usagef("name runs, or use an age: --older-than 30d")
	case len(args) == 0:
		return removeOld(ctx, a, o)
	case o.olderThan != "":
		return cli.Usagef("--older-than selects the runs; omit it or %s", args[0])
	}
	for _, id := range args {
		if err := cli.CheckRun(id); err != nil {
			return err
		}
	}
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
	remove, expand := o.remove, expand
	if c != nil && s.Embedded && cli.FullDisk(a.Global.StateDir) != nil {
		remove, expand = o.makeRoom, listed
	}
	ids, matched, err := expand(ctx, a, c, args, o.logDir)
	if err != nil {
		return err
	}
	if matched > cli.MaxMatched && !o.yes && !o.dryRun {
		if err := a.Confirm(ids, "Remove them?", "nothing was removed"); err != nil {
			return err
		}
	}
	done := removals{Runs: []removal{}, DryRun: o.dryRun}
	var errs []error
	for _, id := range ids {
		r, err := remove(ctx, a, c, namespace, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done.add(a, r)
	}
	return done.end(a, errs)
}

// removals lists the runs that a command has removed or, with --dry-run, would remove.
type removals struct {
	Runs   []removal `json:"runs"`
	Bytes  int64     `json:"bytes"`
	DryRun bool      `json:"dry_run"`
}

// removal describes what was removed of a run.
type removal struct {
	RunID     string `json:"run_id"`
	Bytes     int64  `json:"bytes"`
	Workflows int    `json:"workflows,omitzero"`
	// Sweep reports whether it is a sweep. Its trials are separate runs.
	Sweep bool `json:"sweep,omitzero"`
}

// add adds a run, and prints it.
func (r *removals) add(a *cli.App, of removal) {
	r.Runs, r.Bytes = append(r.Runs, of), r.Bytes+of.Bytes
	switch {
	case a.Global.JSON:
	case r.DryRun:
		fmt.Fprintf(a.Out, "would remove: %s (%s%s)\n", of.RunID, of.kind(), units.Bytes(of.Bytes))
	default:
		fmt.Fprintf(a.Out, "removed: %s (%s%s, and %s on the server)\n", of.RunID, of.kind(), units.Bytes(of.Bytes), units.Count(of.Workflows, "workflow", "workflows"))
	}
}

func (r removal) kind() string {
	if r.Sweep {
		return "sweep, "
	}
	return ""
}

// end prints the total, and returns errs and any failure to print.
func (r *removals) end(a *cli.App, errs []error) error {
	did := "freed"
	if r.DryRun {
		did = "would free"
	}
	return errors.Join(append(errs, a.Print(r, func() {
		a.Say("%s %s of %s", did, units.Bytes(r.Bytes), units.Count(len(r.Runs), "run", "runs"))
	}))...)
}

// remove removes everything that is left of a run.
func (o *rmOptions) remove(ctx context.Context, a *cli.App, c client.Client, namespace, id string) (removal, error) {
	done := removal{RunID: id}
	dirs := []string{o.logDir}
	var known bool
	if c != nil {
		s, err := starter.Get(c, id, "").Summary(ctx)
		if err != nil && !starter.IsError[*starter.NotFoundError](err) {
			return done, err
		}
		done.Sweep = s.Sweep
		if known = err == nil; known && s.Open {
			return done, openError(id)
		}
		if known {
			its, err := logDirsOf(ctx, c, id)
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
		runs, err := o.removeFrom(ctx, p, c, id)
		p.Close()
		for _, r := range runs {
			done.Bytes += r.facts.Bytes
			found = true
		}
		if err != nil {
			return done, err
		}
	}
	switch {
	case !found && c == nil:
		return done, fmt.Errorf("nothing of run %s is stored here", id)
	case !found:
		return done, &starter.NotFoundError{RunID: id}
	case !known || o.dryRun:
		return done, nil
	}
	var err error
	done.Workflows, err = deleteRun(ctx, starter.Get(c, id, ""), namespace)
	return done, err
}

// makeRoom removes an ended run's files while the disk is full. The embedded server then answers
// only for its list. The run itself stays on the server.
func (o *rmOptions) makeRoom(ctx context.Context, a *cli.App, c client.Client, _, id string) (removal, error) {
	done := removal{RunID: id}
	own, err := workflows(ctx, starter.Get(c, id, ""), "WorkflowId = "+temporalapi.Quoted(id))
	switch {
	case err != nil:
		return done, err
	case len(own) == 0:
		return done, &starter.NotFoundError{RunID: id}
	case slices.ContainsFunc(own, isOpen):
		return done, openError(id)
	}
	p, err := openPast(a, o.logDir)
	if err != nil || p == nil {
		return done, err
	}
	defer p.Close()
	runs, err := o.removeFrom(ctx, p, nil, id)
	for _, r := range runs {
		done.Bytes += r.facts.Bytes
	}
	if err == nil && !o.dryRun {
		a.Say("the disk is full, so run %s is still on the server; repeat this command once there is space", id)
	}
	return done, err
}

// logDirsOf returns a run's log directories, as its status lists them. Some may be on other
// hosts.
func logDirsOf(ctx context.Context, c client.Client, id string) (dirs []string, err error) {
	s, err := starter.Get(c, id, "").Status(ctx)
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
	// settleTakes limits how long the host worker may take to detect that a run has finished.
	settleTakes = 10 * time.Second
	settleEvery = 200 * time.Millisecond
)

// removeFrom removes a run's files from one log directory.
func (o *rmOptions) removeFrom(ctx context.Context, p *retention.Past, c client.Client, id string) (removed []*pastRun, err error) {
	if !o.dryRun {
		if err := p.Lock(); err != nil {
			return nil, err
		}
	}
	until := time.Now().Add(settleTakes)
	for {
		entries, err := p.EntriesOf(id)
		if err != nil {
			return nil, err
		}
		var runs []*pastRun
		for _, e := range entries {
			switch logs := p.Path(e); {
			case e.Note == nil:
				return nil, fmt.Errorf("the logs %s belong to an unknown owner; remove them by hand", logs)
			case !e.Note.IsOfThisHost():
				return nil, fmt.Errorf("the logs %s belong to the state directory %s on another host; remove them on that host", logs, filepath.Dir(e.Note.State))
			case !p.Mine(e):
				return nil, fmt.Errorf("the logs %s belong to the state directory %s; name it with --state-dir", logs, filepath.Dir(e.Note.State))
			}
			runs = append(runs, newPastRun(p, e))
		}
		if c != nil {
			if err := askServer(ctx, c, runs); err != nil {
				return nil, err
			}
		}
		living := slices.IndexFunc(runs, func(r *pastRun) bool { return r.facts.Alive() != "" })
		if living >= 0 {
			r := runs[living]
			// The run has ended on the server, but its host worker checks for that only every
			// few seconds.
			if r.facts.Server == retention.Closed && time.Now().Before(until) && retry.Sleep(ctx, settleEvery) == nil {
				continue
			}
			return nil, fmt.Errorf("run %s %s; stop it with `clusterrun stop %s`", id, r.facts.Alive(), id)
		}
		if o.dryRun {
			return runs, nil
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
