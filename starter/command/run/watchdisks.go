package run

import (
	"context"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// watchDisks says when the disk becomes full where the run has its journal and the
// embedded server its database, or that of the logs, and when that is over. A server
// whose disk is full may answer what it is asked and do nothing.
func watchDisks(ctx context.Context, a *cli.App, logs string) {
	dirs := []string{a.Global.StateDir}
	if !strings.HasPrefix(logs, a.Global.StateDir+"/") && logs != spec.NullDir {
		dirs = append(dirs, logs)
	}
	full := map[string]bool{}
	for {
		for _, dir := range dirs {
			switch err := cli.FullDisk(dir); {
			case err != nil && !full[dir]:
				a.Say("%s", err)
			case err == nil && full[dir]:
				a.Say("the disk of %s has room again", dir)
			default:
				continue
			}
			full[dir] = !full[dir]
		}
		if retry.Sleep(ctx, cli.DisksEvery) != nil {
			return
		}
	}
}
