package run

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workers"
)

// handOverBound bounds the wait for the side when this command is suspended.
const handOverBound = 3 * time.Second

// suspendable makes Ctrl-Z suspend this command without suspending the run: before it stops,
// the side in this process hands over to a side of the supervisor.
func suspendable(ctx context.Context, side *workers.OwnersSide) {
	if signal.Ignored(syscall.SIGTSTP) {
		return
	}
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	go func() {
		defer signal.Stop(stops)
		for {
			select {
			case <-ctx.Done():
				return
			case <-stops:
			}
			ending, done := context.WithTimeout(ctx, handOverBound)
			side.HandOver(ending)
			done()
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}()
}
