package supervisor

import (
	"context"
	"os"
	"os/signal"
	"slices"

	"github.com/clusterrun/clusterrun/activities/supervisor/internal/early"
)

// The signals by which [RequestUpgrade] and [RequestEnd] ask.
const (
	SignalUpgrade = early.SignalUpgrade
	SignalEnd     = early.SignalEnd
)

// ObeySignals has the supervisor of this configuration do what signals ask for. The context ends with
// the first of those in ends; the second of them means that there are no graces any more. Those that
// are ignored stay so: who starts a program as nohup does means it. With an Upgrade each of those in
// upgrades requests one. [SignalEnd] and [SignalUpgrade] are listened for in any case.
//
// end ends the context as a signal does. stop is called when the supervisor has ended.
func (c *Config) ObeySignals(ctx context.Context, ends, upgrades []os.Signal) (_ context.Context, end, stop func()) {
	ctx, end = context.WithCancel(ctx)
	ends = slices.DeleteFunc(slices.Clone(ends), signal.Ignored)
	those := append(slices.Clone(ends), SignalEnd)
	signals, requests, killNow := early.Signals(), make(chan struct{}, 1), make(chan struct{})
	c.killNow = killNow
	if c.Upgrade != nil {
		those = append(append(those, upgrades...), SignalUpgrade)
		c.Upgrade.requests = requests
		c.Upgrade.listen = func() { signal.Notify(signals, those...) }
	}
	signal.Notify(signals, those...)
	stopped := make(chan struct{})
	go func() {
		asked := 0
		for {
			select {
			case <-stopped:
				return
			case s := <-signals:
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
		}
	}()
	return ctx, end, func() {
		signal.Stop(signals)
		close(stopped)
		end()
	}
}
