package report

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Watch calls show with the run's status every second and after the run has ended. It returns
// the result, like [starter.Run.WaitNotify].
func Watch(ctx context.Context, r *starter.Run, show func(*starter.Status) error, notify func(error)) (result *spec.RunResult, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = r.WaitNotify(ctx, notify)
	}()
	tick := time.NewTicker(StatusEvery)
	defer tick.Stop()
	for over := false; ; {
		// WaitNotify reports to notify that the server is away.
		if s, failed := r.Status(ctx); failed == nil && (!over || !s.Open) {
			if failed = show(s); failed != nil {
				stop()
				<-ended
				return nil, failed
			}
		}
		if over {
			return result, err
		}
		select {
		case <-ended:
			over = true
		case <-tick.C:
		}
	}
}

// News finds a run's changes between calls.
type News struct {
	known marks
	// unanswered reports whether the run did not answer the previous call.
	unanswered bool
}

// Of returns the facts that are new since the last call. It reports that a run does not answer only
// on the second occasion, because a busy host may be late.
func (n *News) Of(s *starter.Status) []outcome.Fact {
	once := s.Unanswered && !n.unanswered && n.known != nil
	if n.unanswered = s.Unanswered; once {
		return nil
	}
	if n.known == nil {
		n.known = marks{}
	}
	return n.known.news(s, outcome.Fact.IsNews)
}

// NewsLine returns news as one line, prefixed with the time of day.
func NewsLine(news []outcome.Fact) string {
	return time.Now().Format(time.TimeOnly) + " " + outcome.Line(news)
}

// StatusEvery is the interval between updates of the status line.
const StatusEvery = time.Second
