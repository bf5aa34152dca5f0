package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// Wait waits until a lock is free and takes it, using try, which is [Try] or [TryShared]. It polls
// instead of blocking in the kernel, so that ctx can cancel the wait.
func Wait(ctx context.Context, try func(path string) (*os.File, error), path string, every time.Duration) (*os.File, error) {
	for {
		f, err := try(path)
		if !errors.Is(err, ErrLocked) {
			return f, err
		}
		if err := retry.Sleep(ctx, every); err != nil {
			return nil, err
		}
	}
}
