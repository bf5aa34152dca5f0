package hostcheck

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// disk fails if a directory's disk has less free space than least, or is not writable.
func disk(dirs []string, least string) error {
	wanted, err := spec.ParseSize(least)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		space, err := diskspace.Of(dir)
		switch {
		case err != nil:
			return fmt.Errorf("the disk with %s: %w", dir, err)
		case space.ReadOnly:
			return fmt.Errorf("the disk with %s is mounted read-only", dir)
		case space.All > 0 && space.Free < uint64(wanted):
			return fmt.Errorf("the disk with %s has %d MiB left, less than %s", dir, space.Free>>20, least)
		case space.NoFiles:
			return fmt.Errorf("the disk with %s has no space for another file", dir)
		}
	}
	return nil
}

// clock fails if this host's clock differs from the server's by more than most, even after allowing
// for the uncertainty.
func clock(ctx context.Context, of func(context.Context) (ahead, doubt time.Duration, err error), most string) error {
	bound, err := time.ParseDuration(most)
	if err != nil {
		return err
	}
	if of == nil {
		return nil
	}
	ahead, doubt, err := of(ctx)
	switch {
	case err != nil: // a host that cannot reach the server does not get tasks anyway
		return nil //nolint:nilerr // as above
	case ahead.Abs()-doubt <= bound:
		return nil
	case ahead > 0:
		return fmt.Errorf("the clock is %s behind the server's, more than %s", ahead.Round(time.Millisecond), most)
	}
	return fmt.Errorf("the clock is %s ahead of the server's, more than %s", -ahead.Round(time.Millisecond), most)
}
