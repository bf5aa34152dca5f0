package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leastRoom is what has to be free on a disk so that it does not count as full: a
	// write of the embedded server can be that large.
	leastRoom = 1 << 20
	// DisksEvery is how often the disks of a run are looked at.
	DisksEvery = 2 * time.Second
)

// FullDisk returns an error that names the disk of a directory if that is full. The
// directory need not be there yet.
func FullDisk(dir string) error {
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

// Explain names the disk of the embedded server behind an error of it, where that is
// full: then the server may not even have been able to say so.
func (a *App) Explain(err error) error {
	if full := FullDisk(a.Global.StateDir); full != nil {
		return fmt.Errorf("%w; %w", err, full)
	}
	return err
}
