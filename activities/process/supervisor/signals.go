package supervisor

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// The signals that [RequestUpgrade] and [RequestEnd] send. SignalEnd may be sent repeatedly. In
// contrast, a second SIGTERM cancels the graces. SignalUpgrade is not SIGHUP, because that is also
// sent when a terminal closes. Neither signal kills a Go program that does not handle it.
const (
	SignalEnd     = syscall.SIGUSR1
	SignalUpgrade = syscall.SIGUSR2
)

// ObeySignals makes this configuration's supervisor obey signals. The first signal in ends cancels
// the context, and the second also cancels the graces. Ignored signals remain ignored, because a
// caller that ignores them, like nohup, intends that. If c.Upgrade is set, each signal in upgrades
// requests an upgrade. ObeySignals always handles [SignalEnd] and, if c.Upgrade is set,
// [SignalUpgrade].
//
// Call stop when the supervisor has exited.
func (c *Config) ObeySignals(ctx context.Context, ends, upgrades []os.Signal) (_ context.Context, stop func()) {
	ctx, end := context.WithCancel(ctx)
	ends = slices.DeleteFunc(slices.Clone(ends), signal.Ignored)
	those := append(slices.Clone(ends), SignalEnd)
	signals, requests, killNow := make(chan os.Signal, 16), make(chan struct{}, 1), make(chan struct{})
	c.killNow = killNow
	if c.Upgrade != nil {
		those = append(append(those, upgrades...), SignalUpgrade)
		c.Upgrade.requests = requests
	}
	signal.Notify(signals, those...)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		asked := 0
		for s := range signals {
			switch {
			case s == SignalEnd:
				end()
			case slices.Contains(ends, s):
				end()
				if asked++; asked == 2 {
					close(killNow)
				}
			case s == SignalUpgrade || slices.Contains(upgrades, s):
				select {
				case requests <- struct{}{}:
				default: // one is pending
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals) // nothing is sent after this
		close(signals)
		<-stopped
		end()
	}
}
