package logs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Announce returns a function that reports restarted processes and the reasons. It reports the
// restart of a whole group once.
func Announce(a *cli.App, run *starter.Run, s *spec.RunSpec, name func(rank int) string) func(rank, attempt int) {
	var announced atomic.Int64
	reasons := restartReasons{run: run}
	return func(rank, attempt int) {
		last := announced.Load()
		switch {
		case s.RestartScope != spec.RestartScopeGroup:
			a.Say("%s", a.Color.Dim(reasons.line(name(rank), attempt)))
		case int64(attempt) > last && announced.CompareAndSwap(last, int64(attempt)):
			ctx, cancel := context.WithTimeout(context.Background(), cli.RequestTimeout)
			now, err := run.Status(ctx)
			cancel()
			if err != nil {
				now = &starter.Status{} // the report omits the reason
			}
			a.Say("%s", a.Color.Dim(groupRestarted(now, attempt)))
		}
	}
}

// restartReasons caches the reasons for task restarts. If many tasks restart at the same time,
// the run is asked once.
type restartReasons struct {
	run *starter.Run

	mu    sync.Mutex
	asked time.Time
	known map[string]string // reasons by task, except those already reported
}

// line returns the message about a task's restart.
func (r *restartReasons) line(task string, attempt int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[task] == "" || time.Since(r.asked) > time.Second {
		ctx, cancel := context.WithTimeout(context.Background(), cli.RequestTimeout)
		r.known = map[string]string{}
		if s, err := r.run.Status(ctx); err == nil { // otherwise the report omits the reason
			for _, t := range s.Tasks {
				r.known[t.Name] = t.LastRestart
			}
		}
		r.asked = time.Now()
		cancel()
	}
	why := r.known[task]
	delete(r.known, task)
	if why == "" {
		return fmt.Sprintf("%s restarted (attempt_%d)", task, attempt)
	}
	return fmt.Sprintf("%s; %s restarted (attempt_%d)", why, task, attempt)
}

// groupRestarted returns the message about the group restart that began with the given attempt.
func groupRestarted(s *starter.Status, attempt int) string {
	for _, r := range s.GroupRestarts {
		if r.Attempt == attempt {
			return outcome.Restart(r)
		}
	}
	return fmt.Sprintf("the group restarted (attempt_%d)", attempt)
}
