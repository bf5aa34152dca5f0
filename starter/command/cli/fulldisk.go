package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leastRoom is the free space, in bytes, below which a disk counts as full. A write of the
	// embedded server can be that large.
	leastRoom = 1 << 20
	// DisksEvery is the time between checks of the disks of a run.
	DisksEvery = 2 * time.Second
)

// FullDisk returns an error that names the disk of a directory if the disk is full. The
// directory need not exist yet.
func FullDisk(dir string) error {
	var fs unix.Statfs_t
	for at := dir; unix.Statfs(at, &fs) != nil; at = filepath.Dir(at) {
		if at == filepath.Dir(at) {
			return nil
		}
	}
	free := fs.Bavail
	if os.Geteuid() == 0 {
		free = fs.Bfree // including the space reserved for root
	}
	switch unit := uint64(fs.Frsize); {
	case fs.Blocks == 0: // the file system does not count them
	case free*unit < leastRoom:
		return fmt.Errorf("the disk of %s is full (%d KiB of %d are free); make room there, or choose another directory with --state-dir or --log-dir", dir, free*unit>>10, fs.Blocks*unit>>10)
	case fs.Files > 0 && fs.Ffree == 0:
		return fmt.Errorf("the disk of %s is full (no file more can be made); make room there, or choose another directory with --state-dir or --log-dir", dir)
	}
	return nil
}

// Explain adds to an error of the embedded server that its disk is full, if it is: the server
// may not have been able to report that itself.
func (a *App) Explain(err error) error {
	if full := FullDisk(a.Global.StateDir); full != nil {
		return fmt.Errorf("%w; %w", err, full)
	}
	return err
}
