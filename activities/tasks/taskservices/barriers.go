package taskservices

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// acrossHosts passes arrivals of tasks on to barriers that span hosts.
type acrossHosts struct {
	meetings *barriers.Barriers
	waits    *prometheus.HistogramVec
}

var _ taskapi.Barriers = acrossHosts{}

// released is the outcome of a wait that ended with the release of the barrier.
const released = "released"

// newAcrossHosts returns barriers that record how long tasks wait.
func newAcrossHosts(meetings *barriers.Barriers, waits *prometheus.HistogramVec) acrossHosts {
	for _, outcome := range []string{
		released, wire.CodeBarrierTimeout, wire.CodeBarrierBroken, wire.CodeBarrierMismatch, wire.CodeAlreadyWaiting, wire.CodeTooLarge,
	} {
		waits.WithLabelValues(outcome) // makes the series begin at 0
	}
	return acrossHosts{meetings, waits}
}

// Arrive implements [taskapi.Barriers].
func (b acrossHosts) Arrive(ctx context.Context, a taskapi.Arrival) (taskapi.Release, error) {
	came := time.Now()
	release, err := b.meetings.Arrive(ctx, barriers.Arrival{
		Run:  spec.RunRef{WorkflowID: a.Run.WorkflowID, RunID: a.Run.RunID, Generation: a.Generation},
		Task: a.Task, Name: a.Name, Key: a.Key, Participants: a.Participants, Here: a.Here, Value: a.Value, Timeout: a.Timeout,
	})
	if err != nil {
		err = forTask(err, a, came)
		if refused, ok := errors.AsType[*taskapi.BarrierError](err); ok {
			b.waits.WithLabelValues(refused.Code).Observe(time.Since(came).Seconds())
		}
		return taskapi.Release{}, err
	}
	b.waits.WithLabelValues(released).Observe(time.Since(came).Seconds())
	return taskapi.Release{Round: release.Round + 1, Values: spec.ValuesOf(release.Values, a.Participants)}, nil
}

// forTask converts an error into the form that a task receives. came is the time of the
// arrival.
func forTask(err error, a taskapi.Arrival, came time.Time) error {
	var e *barriers.Error
	switch {
	case errors.Is(err, barriers.ErrShutdown):
		return fmt.Errorf("%w: %w", taskapi.ErrComeAgain, err)
	case errors.As(err, &e):
		return &taskapi.BarrierError{Code: e.Code, Message: e.Message, Standing: standing(e, a, came)}
	}
	return err
}

// standing returns the state of the round. It returns nil if the state is unknown because the
// server was away or the round was terminated. The clocks of the server and of this host may
// differ, so the wait is counted from this task's arrival.
func standing(broken *barriers.Error, a taskapi.Arrival, came time.Time) *taskapi.Standing {
	if len(broken.Missing) == 0 {
		return nil
	}
	s := &taskapi.Standing{
		Name: a.Name, Round: broken.Round + 1, Arrived: []string{}, Missing: []string{},
		Waited: time.Since(came).Seconds(),
	}
	// A task that never arrived has been missing since the first arrival.
	since := broken.Missing[0].Since
	missing := map[string]bool{}
	for _, m := range broken.Missing {
		s.Missing = append(s.Missing, m.Task)
		missing[m.Task] = true
		if m.Since.Before(since) {
			since = m.Since
		}
	}
	s.Since = since.UTC().Format(time.RFC3339)
	for _, task := range a.Participants {
		if !missing[task] {
			s.Arrived = append(s.Arrived, task)
		}
	}
	return s
}
