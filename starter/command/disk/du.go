package disk

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// DiskUse is the disk space of runs and logs on this host, in bytes.
type DiskUse struct {
	Runs     []runDisk `json:"runs"`
	Logs     int64     `json:"logs"`
	Journals int64     `json:"journals"`
	Shipped  int64     `json:"shipped"`
	Database int64     `json:"database"`
	// StateDir is the size of everything in the state directory.
	StateDir int64 `json:"state_dir"`
}

type runDisk struct {
	RunID   string `json:"run_id"`
	Dir     string `json:"dir"`
	State   string `json:"state"`
	Logs    int64  `json:"logs"`
	Journal int64  `json:"journal"`
	Shipped int64  `json:"shipped"`
	Total   int64  `json:"total"`
}

func DU(a *cli.App) *cobra.Command {
	var o duOptions
	cmd := &cobra.Command{
		Use:   "du [flags]",
		Short: "Show how much disk space runs take on this host",
		Args:  cli.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return runDu(a, &o) },
	}
	cmd.Flags().IntVarP(&o.limit, "limit", "n", 20, "show at most `NUMBER` runs; --json has all")
	logDirFlag(cmd, &o.logDir)
	return cmd
}

// duOptions are the flags of [DU].
type duOptions struct {
	logDir string
	limit  int
}

// runDu implements [DU].
func runDu(a *cli.App, o *duOptions) error {
	if o.limit < 1 {
		return cli.Usagef("--limit %d: give 1 or more", o.limit)
	}
	u, err := Usage(a, o.logDir)
	if err != nil {
		return err
	}
	slices.SortStableFunc(u.Runs, func(a, b runDisk) int { return cmp.Compare(b.Total, a.Total) })
	return a.Print(u, func() { printDisk(a, u, o.limit) })
}

func Usage(a *cli.App, logDir string) (DiskUse, error) {
	u := DiskUse{
		Runs: []runDisk{}, Database: retention.TreeSize(a.ServerDir()), StateDir: retention.TreeSize(a.Global.StateDir),
	}
	for _, pattern := range []string{"*", "*/*"} { // of workers, and of runs
		for total, names := range map[*int64][]string{&u.Journals: {"journal", "released"}, &u.Shipped: {"shipped"}} {
			for _, name := range names {
				dirs, _ := filepath.Glob(filepath.Join(a.Global.StateDir, pattern, name))
				for _, dir := range dirs {
					if filepath.Dir(filepath.Dir(dir)) != a.LogsDir() { // a run may have such a name
						*total += retention.TreeSize(dir)
					}
				}
			}
		}
	}
	p, err := openPast(a, logDir)
	if err != nil || p == nil {
		return u, err
	}
	defer p.Close()
	u.Logs = retention.TreeSize(p.Dir)
	entries, err := p.Entries()
	if err != nil {
		a.Say("not everything can be read: %s", err)
	}
	for _, e := range entries {
		facts, rest := p.Facts(e, false), p.Rest(e)
		r := runDisk{RunID: e.RunID, Dir: p.Path(e), State: stateOf(e, p.Mine(e), facts), Journal: rest.Journal, Shipped: rest.Shipped}
		r.Logs, _ = p.Size(e)
		r.Total = r.Logs + rest.Bytes()
		u.Runs = append(u.Runs, r)
	}
	return u, nil
}

// stateOf returns the state of a run, as this host knows it.
func stateOf(e retention.Entry, mine bool, f retention.Facts) string {
	switch alive := f.Alive(); {
	case !mine, alive == retention.Unsettled:
		return "unknown"
	case alive != "":
		return "held"
	case e.Kept:
		return "kept"
	}
	return "ended"
}

func printDisk(a *cli.App, u DiskUse, limit int) {
	w := cli.NewTable(a.Out)
	if len(u.Runs) > 0 {
		w.Row("RUN", "STATE", "LOGS", "JOURNAL", "SHIPPED", "DIRECTORY")
	}
	for _, r := range u.Runs[:min(limit, len(u.Runs))] {
		w.Row(r.RunID, r.State, shipped.Size(r.Logs), shipped.Size(r.Journal), shipped.Size(r.Shipped), r.Dir)
	}
	w.Flush()
	if more := len(u.Runs) - limit; more > 0 {
		a.Say("%s that take less are not shown; a higher --limit shows them", plural.Of(more, "more run", "more runs"))
	}
	w.Row("\nlogs", shipped.Size(u.Logs), plural.Of(len(u.Runs), "run", "runs"))
	w.Row("journals", shipped.Size(u.Journals), "")
	w.Row("shipped", shipped.Size(u.Shipped), "")
	w.Row("database", shipped.Size(u.Database), "")
	w.Row("state directory", shipped.Size(u.StateDir), a.Global.StateDir)
	w.Flush()
}
