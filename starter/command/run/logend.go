package run

import (
	"os"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// pruneDaily is the interval between searches for old logs by commands without a long-lived host
// worker.
const pruneDaily = 24 * time.Hour

// pruneOldLogs removes logs of `clusterrun run` that are older than the default, once a day.
// Host workers remove their own logs by their own options.
func pruneOldLogs(a *cli.App) {
	stamp := filepath.Join(a.Global.StateDir, "pruned")
	if info, err := os.Stat(stamp); err == nil {
		// A wrong clock may have set a time in the future.
		if ago := time.Since(info.ModTime()); ago >= 0 && ago < pruneDaily {
			return
		}
	}
	if os.WriteFile(stamp, nil, 0o600) != nil || os.Chtimes(stamp, time.Time{}, time.Now()) != nil {
		return // skip the search, because its time cannot be recorded
	}
	for _, home := range []string{a.RunsDir(), hostsDir(a)} {
		p := retention.Policy{Home: home, For: retention.DefaultFor}
		if removed, err := p.Apply(a.LogsDir(), time.Now(), workers.Holds); err != nil && len(removed) == 0 {
			a.Say("could not remove old logs: %s", err)
		}
	}
}

// noteBegin records the run that the logs copied from other hosts belong to.
func (l *localRun) noteBegin() {
	root := logRoot(l.App, l.spec)
	namespace, err := cli.NamespaceOf(l.server)
	if err != nil || root == spec.NullDir || tasklog.MakeDir(filepath.Dir(l.output.dir)) != nil {
		return // logs without a note are kept
	}
	_ = retention.Begin(root, runkey.Run{Namespace: namespace, WorkflowID: l.run.ID, RunID: l.run.ExecutionID}, l.dir.Path)
}
