package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// endings merges everything that may stop the server into one context, which is canceled with the
// cause. All of these are clean stops, even while the server is starting.
func endings(ctx context.Context, o Options) (_ context.Context, end context.CancelCauseFunc, _ error) {
	ctx, end = context.WithCancelCause(ctx)
	if err := watchLifeline(o.LifelineFD, end); err != nil {
		return nil, nil, err
	}
	watchSignals(ctx, end)
	// The reader of our output may be gone while clients still use the server. In that case a
	// failed write is ignored and does not stop the server.
	signal.Ignore(syscall.SIGPIPE)
	return ctx, end, nil
}

// stopSignals request a clean stop. They include a hangup, because a server in the foreground stops
// with its terminal. If nohup has made this signal ignored, it remains ignored.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// watchSignals stops the server at the first signal. A second signal gets the default handling and
// immediately kills the process.
func watchSignals(ctx context.Context, end context.CancelCauseFunc) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, stopSignals()...)
	go func() {
		select {
		case s := <-c:
			end(fmt.Errorf("signal: %s", s))
		case <-ctx.Done():
		}
		signal.Stop(c)
	}()
}

var errOwnerGone = errors.New("its owner has exited (--lifeline-fd)")

// watchLifeline stops the server when the inherited descriptor reaches EOF. The process that
// started the server holds the other end without writing to it. The kernel closes that end when the
// process dies.
func watchLifeline(fd int, end context.CancelCauseFunc) error {
	if fd == NoLifeline {
		return nil
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return usagef("--lifeline-fd %d: %w: the program that starts this server must pass it on", fd, err)
	}
	f := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		// Input is ignored. An error counts as EOF, because an orphaned server is worse than a
		// stopped one.
		buf := make([]byte, 512)
		for {
			if _, err := f.Read(buf); err != nil {
				end(errOwnerGone)
				return
			}
		}
	}()
	return nil
}
