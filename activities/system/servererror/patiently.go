package servererror

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

const patience = 300 * time.Millisecond

// Patiently calls do, and retries it for as long as the server does not answer. It calls notify
// with the error when the server stops answering, and with nil when it answers again.
func Patiently(ctx context.Context, notify func(error), do func() error) error {
	err := do()
	away := false
	for ; IsTransient(err) && ctx.Err() == nil; err = do() {
		if !away {
			notify(err)
		}
		away = true
		_ = retry.Sleep(ctx, patience) // the loop checks ctx
	}
	if away && err == nil {
		notify(nil)
	}
	return err
}
