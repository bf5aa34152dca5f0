package cli

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/remedy"
)

const (
	// minRoom is the minimum free space, in bytes. With less, a disk counts as full, because the
	// embedded server's writes can reach this size.
	minRoom = 1 << 20
	// DisksEvery is the interval between checks of a run's disks.
	DisksEvery = 2 * time.Second
)

// FullDisk returns an error that names a directory's disk if the disk is full. The directory
// need not exist yet.
func FullDisk(dir string) error {
	space, err := diskspace.Of(dir)
	counted := err == nil && space.All > 0
	switch {
	case counted && space.Free < minRoom:
		err = fmt.Errorf("the disk with %s is full (%d KiB of %d are free)", dir, space.Free>>10, space.All>>10)
	case counted && space.NoFiles:
		err = fmt.Errorf("the disk with %s is full (it cannot hold another file)", dir)
	default:
		return nil
	}
	return remedy.With(err, "free some space, or choose another directory with --state-dir or --log-dir")
}

// Explain adds to an embedded server's error that its disk is full, if so, because the server may
// have been unable to report that itself.
func (a *App) Explain(err error) error {
	if full := FullDisk(a.Global.StateDir); full != nil {
		return fmt.Errorf("%w; %w", err, full)
	}
	return err
}
