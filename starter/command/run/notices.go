package run

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// noticesFor is the longest time to wait for the notices of a run: the host worker that sends
	// them ends with this command. sayNotices is the time after which a message says so.
	noticesFor = 30 * time.Second
	sayNotices = 2 * time.Second
)

// awaitNotices waits until the notices of the run are sent. A signal ends the wait.
func (l *localRun) awaitNotices(end ending) {
	if len(l.spec.Notify) == 0 || end.result == nil || l.agents.joined != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), noticesFor)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.run.AwaitNotices(ctx) }()
	slow := time.After(sayNotices)
	for {
		select {
		case err := <-done:
			if err != nil {
				l.Say("%s", err)
			}
			return
		case <-slow:
			l.Say("the run has ended (%s); its notices are tried for %s at most, and Ctrl-C ends that", end.result.Verdict, spec.Duration(noticesFor))
		case s := <-l.signals:
			l.interrupted.Add(s)
			cancel()
		}
	}
}
