package run

import (
	"os"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// pruneDaily is how often the commands that have no host worker of their own for long look
// for old logs.
const pruneDaily = 24 * time.Hour

// pruneOldLogs removes logs of `clusterrun run` that are older than the default, once a day.
// Those of host workers are kept for as long as these were told.
func pruneOldLogs(a *cli.App) {
	stamp := filepath.Join(a.Global.StateDir, "pruned")
	if info, err := os.Stat(stamp); err == nil {
		// A clock that was wrong may have set it to a time to come.
		if ago := time.Since(info.ModTime()); ago >= 0 && ago < pruneDaily {
			return
		}
	}
	if os.WriteFile(stamp, nil, 0o600) != nil || os.Chtimes(stamp, time.Time{}, time.Now()) != nil {
		return // there is no room to say that we have looked
	}
	for _, home := range []string{a.RunsDir(), hostsDir(a)} {
		p := retention.Policy{Home: home, For: retention.DefaultFor}
		if removed, err := p.Apply(a.LogsDir(), time.Now(), workers.Holds); err != nil && len(removed) == 0 {
			a.Say("old logs are not removed: %s", err)
		}
	}
}

// noteEnd notes beside the logs of a run, below root, how it has ended.
func noteEnd(root string, run *starter.Run, end ending) {
	if run == nil || !end.closed() || root == spec.NullDir {
		return
	}
	well := end.result != nil && (end.result.Verdict == spec.VerdictSucceeded || end.result.Verdict == spec.VerdictCancelled)
	// Without it the run has ended when its directory is gone.
	_ = retention.End(root, run.ID, run.ExecutionID, time.Now(), well)
}

// noteBegin notes whose the logs are that are copied from other hosts.
func (l *localRun) noteBegin() {
	root := logRoot(l.App, l.spec)
	namespace, err := cli.NamespaceOf(l.server)
	if err != nil || root == spec.NullDir || tasklog.MakeDir(filepath.Dir(l.output.dir)) != nil {
		return // what cannot be noted stays
	}
	_ = retention.Begin(root, runkey.Run{Namespace: namespace, WorkflowID: l.run.ID, RunID: l.run.ExecutionID}, l.dir.Path)
}
