package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// endings merges what may end the server into one context, whose cause says which
// it was. All of them are clean stops: also while the server still starts.
func endings(ctx context.Context, o Options) (_ context.Context, end context.CancelCauseFunc, _ error) {
	ctx, end = context.WithCancelCause(ctx)
	if err := watchLifeline(o.LifelineFD, end); err != nil {
		return nil, nil, err
	}
	watchSignals(ctx, end)
	// The reader of our output may be gone while clients still use the server. A failed write
	// is then ignored and does not end the server.
	signal.Ignore(syscall.SIGPIPE)
	return ctx, end, nil
}

// stopSignals ask for a clean stop. A hangup is one because a server in the foreground
// ends with its terminal; nohup makes it ignored, and so it stays.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// watchSignals ends the server at the first signal. A second one finds the
// default again and ends the process at once.
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

var errOwnerGone = errors.New("its owner is gone (--lifeline-fd)")

// watchLifeline ends the server when the inherited descriptor reaches its end. The process that
// started the server holds the other end and writes nothing; the kernel closes it when that
// process dies.
func watchLifeline(fd int, end context.CancelCauseFunc) error {
	if fd == NoLifeline {
		return nil
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return usagef("--lifeline-fd %d: %w: the program that starts this server has to pass it on", fd, err)
	}
	f := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		// Input is ignored. An error counts as the end: an orphaned server is worse than a
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
