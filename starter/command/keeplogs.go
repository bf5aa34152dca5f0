package command

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// keepLogs are the flags that say how long logs are kept.
type keepLogs struct{ age, most string }

// forever is the age at which no logs are removed.
const forever = "forever"

func (k *keepLogs) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.age, "keep-logs", "90d", "keep logs for this `TIME` after a run has ended, such as 30d, or forever")
	cmd.Flags().StringVar(&k.most, "max-logs", "", "`SIZE` that the logs of all runs may take, such as 50GiB; beyond that, logs of the runs that ended first are removed (default: no limit)")
}

// policy returns what the flags say, for the runs of a state directory.
func (k *keepLogs) policy(home string) (*retention.Policy, error) {
	p := &retention.Policy{Home: home}
	if k.age != forever {
		var err error
		if p.For, err = length(k.age); err != nil || p.For <= 0 {
			return nil, usagef("--keep-logs %q: give a time such as 30d or 12h, or forever", k.age)
		}
	}
	if k.most != "" {
		var err error
		if p.MostBytes, err = spec.ParseSize(k.most); err != nil {
			return nil, usagef("--max-logs: %v", err)
		}
	}
	return p, nil
}

// pruneDaily is how often the commands that have no host worker of their own for long look
// for old logs.
const pruneDaily = 24 * time.Hour

// pruneOldLogs removes logs of `clusterrun run` that are older than the default, once a day.
// Those of host workers are kept for as long as these were told.
func pruneOldLogs(a *app) {
	stamp := filepath.Join(a.global.stateDir, "pruned")
	if info, err := os.Stat(stamp); err == nil {
		// A clock that was wrong may have set it to a time to come.
		if ago := time.Since(info.ModTime()); ago >= 0 && ago < pruneDaily {
			return
		}
	}
	if os.WriteFile(stamp, nil, 0o600) != nil || os.Chtimes(stamp, time.Time{}, time.Now()) != nil {
		return // there is no room to say that we have looked
	}
	for _, home := range []string{a.runsDir(), hostsDir(a)} {
		p := retention.Policy{Home: home, For: retention.DefaultFor}
		if removed, err := p.Apply(a.logsDir(), time.Now(), workers.Holds); err != nil && len(removed) == 0 {
			a.say("old logs are not removed: %s", err)
		}
	}
}

// noteEnd notes beside the logs of a run how it has ended.
func (l *localRun) noteEnd(end ending) {
	root := logRoot(l.app, l.spec)
	if l.run == nil || !end.closed() || root == spec.NullDir {
		return
	}
	well := end.result != nil && (end.result.Verdict == spec.VerdictSucceeded || end.result.Verdict == spec.VerdictCancelled)
	// Without it the run has ended when its directory is gone.
	_ = retention.End(root, l.run.ID, l.run.ExecutionID, time.Now(), well)
}

// noteBegin notes whose the logs are that are copied from other hosts.
func (l *localRun) noteBegin() {
	root := logRoot(l.app, l.spec)
	namespace, err := namespaceOf(l.server)
	if err != nil || root == spec.NullDir || tasklog.MakeDir(filepath.Dir(l.output.dir)) != nil {
		return // what cannot be noted stays
	}
	_ = retention.Begin(root, runkey.Run{Namespace: namespace, WorkflowID: l.run.ID, RunID: l.run.ExecutionID}, l.dir.Path)
}
