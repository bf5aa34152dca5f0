package hostcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
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
			return fmt.Errorf("the disk of %s: %w", dir, err)
		case space.ReadOnly:
			return fmt.Errorf("the disk of %s is mounted read-only", dir)
		case space.All > 0 && space.Free < uint64(wanted):
			return fmt.Errorf("the disk of %s has %d MiB left, less than %s", dir, space.Free>>20, least)
		case space.NoFiles:
			return fmt.Errorf("the disk of %s has no room for another file", dir)
		}
	}
	return nil
}

// memory fails if less memory than least is available, or if the memory controllers counted
// uncorrectable errors since the boot.
func memory(root, least string) error {
	wanted, err := spec.ParseSize(least)
	if err != nil {
		return err
	}
	counts, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/edac/mc/mc*/ue_count")) // the pattern is valid
	for _, path := range counts {
		b, err := os.ReadFile(path)
		if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 {
			return fmt.Errorf("%d memory errors since the boot could not be corrected (%s)", n, filepath.Base(filepath.Dir(path)))
		}
	}
	available, err := resources.MemInfo(root, "MemAvailable")
	if err != nil {
		return err
	}
	if available < wanted {
		return fmt.Errorf("%d MiB of memory are available, less than %s", available>>20, least)
	}
	return nil
}

// clock fails if this host's clock certainly differs from the server's by more than most.
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
	case err != nil: // without the server the host does not get tasks
		return nil //nolint:nilerr // as above
	case ahead.Abs()-doubt <= bound:
		return nil
	case ahead > 0:
		return fmt.Errorf("the clock is %s behind the server's, more than %s", ahead.Round(time.Millisecond), most)
	}
	return fmt.Errorf("the clock is %s ahead of the server's, more than %s", -ahead.Round(time.Millisecond), most)
}

const (
	// maxLinks limits the tried hosts, and linkTakes the wait for each.
	maxLinks, linkTakes = 5, 3 * time.Second
)

// link fails if other hosts exist, but none of the first few is reachable.
func link(ctx context.Context, others func(context.Context) (map[string]string, error)) error {
	if others == nil {
		return nil
	}
	addresses, err := others(ctx)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	hosts := slices.Sorted(maps.Keys(addresses))
	hosts = hosts[:min(len(hosts), maxLinks)]
	ctx, cancel := context.WithTimeout(ctx, linkTakes)
	defer cancel()
	ends := make(chan error, len(hosts))
	for _, host := range hosts {
		go func() {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addresses[host])
			if err == nil {
				_ = c.Close()
			}
			ends <- err
		}()
	}
	var last error
	for range hosts {
		if last = <-ends; last == nil {
			return nil
		}
	}
	if last != nil {
		return fmt.Errorf("no connection to %s: %w", shorten.List(hosts, maxLinks), reason(last))
	}
	return nil
}

// reason returns a network error without the address and the call.
func reason(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
		return errors.New("no answer")
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}
