package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// leastRoom is what has to be free on a disk so that it does not count as full: a
	// write of the embedded server can be that large.
	leastRoom = 1 << 20
	// disksEvery is how often the disks of a run are looked at.
	disksEvery = 2 * time.Second
)

// fullDisk returns an error that names the disk of a directory if that is full. The
// directory need not be there yet.
func fullDisk(dir string) error {
	var fs unix.Statfs_t
	for at := dir; unix.Statfs(at, &fs) != nil; at = filepath.Dir(at) {
		if at == filepath.Dir(at) {
			return nil
		}
	}
	free := fs.Bavail
	if os.Geteuid() == 0 {
		free = fs.Bfree // what is kept for root
	}
	switch unit := uint64(fs.Frsize); {
	case fs.Blocks == 0: // it does not count them
	case free*unit < leastRoom:
		return fmt.Errorf("the disk of %s is full (%d KiB of %d are free); make room there, or choose another directory with --state-dir or --log-dir", dir, free*unit>>10, fs.Blocks*unit>>10)
	case fs.Files > 0 && fs.Ffree == 0:
		return fmt.Errorf("the disk of %s is full (no file more can be made); make room there, or choose another directory with --state-dir or --log-dir", dir)
	}
	return nil
}

// explain names the disk of the embedded server behind an error of it, where that is
// full: then the server may not even have been able to say so.
func (a *app) explain(err error) error {
	if full := fullDisk(a.global.stateDir); full != nil {
		return fmt.Errorf("%w; %w", err, full)
	}
	return err
}

// watchDisks says when the disk becomes full where the run has its journal and the
// embedded server its database, or that of the logs, and when that is over. A server
// whose disk is full may answer what it is asked and do nothing.
func (l *localRun) watchDisks(ctx context.Context) {
	dirs := []string{l.global.stateDir}
	if logs := logRoot(l.app, l.spec); !strings.HasPrefix(logs, l.global.stateDir+"/") && logs != spec.NullDir {
		dirs = append(dirs, logs)
	}
	full := map[string]bool{}
	for {
		for _, dir := range dirs {
			switch err := fullDisk(dir); {
			case err != nil && !full[dir]:
				l.say("%s", err)
			case err == nil && full[dir]:
				l.say("the disk of %s has room again", dir)
			default:
				continue
			}
			full[dir] = !full[dir]
		}
		if retry.Sleep(ctx, disksEvery) != nil {
			return
		}
	}
}
