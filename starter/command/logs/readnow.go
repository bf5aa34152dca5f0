package logs

import (
	"context"

	"github.com/clusterrun/clusterrun/starter"
)

// ReadNow passes the selected output that exists now to Deliver, which must be set. It reports
// what cannot be read.
func (l *Reader) ReadNow(ctx context.Context, of *starter.Status) error {
	status := *of
	s := &status
	l.tasks.learn(s)
	l.LearnServices(ctx, s)
	defer l.CloseHosts()
	l.read(ctx, s)
	for _, r := range l.readers {
		if err := r.Stop(ctx); err != nil {
			return err
		}
	}
	if err := l.FinishHosts(ctx); err != nil {
		return err
	}
	l.sayPruned(s)
	l.Misses(s)
	return nil
}
