package supervisor

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// The signals by which [RequestUpgrade] and [RequestEnd] ask. SignalEnd may be sent often: the
// second SIGTERM means that there are no graces any longer. SignalUpgrade is not SIGHUP, which also
// comes from a terminal that is closed. Neither ends a Go program that does not listen for it.
const (
	SignalEnd     = syscall.SIGUSR1
	SignalUpgrade = syscall.SIGUSR2
)

// ObeySignals makes the supervisor of this configuration do what signals ask for. The context ends
// with the first of those in ends; the second of them means that there are no graces any longer.
// Those that are ignored stay so: a caller that ignores them, as nohup does, intends that. With an
// Upgrade each of those in upgrades requests one. [SignalEnd] and [SignalUpgrade] are listened for
// in any case.
//
// end ends the context as a signal does. stop is called when the supervisor has ended.
func (c *Config) ObeySignals(ctx context.Context, ends, upgrades []os.Signal) (_ context.Context, end func(), stop func()) {
	ctx, end = context.WithCancel(ctx)
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
				default: // there is one already
				}
			}
		}
	}()
	return ctx, end, func() {
		signal.Stop(signals) // nothing is sent afterwards
		close(signals)
		<-stopped
		end()
	}
}
