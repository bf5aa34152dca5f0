package embedded

import (
	"context"
	"errors"
	"os"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// lock takes a file lock by try. It polls instead of blocking in the kernel, so that a context can
// cancel the wait.
func lock(ctx context.Context, try func(path string) (*os.File, error), path string) (*os.File, error) {
	for {
		f, err := try(path)
		if !errors.Is(err, filelock.ErrLocked) {
			return f, err
		}
		if err := retry.Sleep(ctx, settleEvery); err != nil {
			return nil, err
		}
	}
}
