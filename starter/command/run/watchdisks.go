package run

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// roomWithin is how long, once all the run's processes have exited, the server may fail to answer
// because its disk is full.
const roomWithin = 10 * time.Second

// watchDisks reports when a disk becomes full, and when space is available again. It watches the
// disk with the run's journal and the embedded server's database, and the disk with the logs. A
// server with a full disk may answer requests without carrying them out. If the server's records
// are the only thing that the run is still waiting for, watchDisks gives up.
func (l *localRun) watchDisks(ctx context.Context) {
	state, logs := l.Global.StateDir, logRoot(l.App, l.spec)
	dirs := []string{state}
	if !strings.HasPrefix(logs, state+"/") && logs != spec.NullDir {
		dirs = append(dirs, logs)
	}
	full := map[string]bool{}
	var idle time.Time
	for {
		for _, dir := range dirs {
			switch err := cli.FullDisk(dir); {
			case err != nil && !full[dir]:
				l.Say("%s", err)
			case err == nil && full[dir]:
				l.Say("the disk with %s has free space again", dir)
			default:
				continue
			}
			full[dir] = !full[dir]
		}
		switch {
		case !full[state] || !l.troubled.Load() || !l.isIdle(ctx):
			idle = time.Time{}
		case idle.IsZero():
			idle = time.Now()
		case time.Since(idle) > roomWithin:
			l.giveUp()
			return
		}
		if retry.Sleep(ctx, cli.DisksEvery) != nil {
			return
		}
	}
}

// isIdle reports whether none of the run's processes is left on this machine or on the run's own
// hosts.
func (l *localRun) isIdle(ctx context.Context) bool {
	if !l.server.Embedded || l.agents.host() != "" || l.worker.Supervisor == nil {
		return false
	}
	there, err := l.worker.Supervisor.Processes(ctx, runkey.Run{})
	if err != nil || slices.ContainsFunc(there.Processes, func(p supervisor.Process) bool { return p.Exit == nil }) {
		return false
	}
	ends, err := l.hosts.Ends(ctx)
	return err == nil && !ends.Living
}
