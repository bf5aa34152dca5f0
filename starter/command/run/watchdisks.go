package run

import (
	"context"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// watchDisks reports when a disk becomes full, and when it has room again. It watches the disk
// with the run's journal and the embedded server's database, and the disk with the logs. A
// server whose disk is full may answer requests without carrying them out.
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
