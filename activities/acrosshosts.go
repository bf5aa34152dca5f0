package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/barriers"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// acrossHosts brings tasks that ask their host for a barrier to one that spans
// hosts.
type acrossHosts struct{ host *Host }

var _ taskapi.Barriers = acrossHosts{}

// Arrive implements [taskapi.Barriers].
func (b acrossHosts) Arrive(ctx context.Context, a taskapi.Arrival) (taskapi.Release, error) {
	timeout := a.Timeout
	switch {
	case timeout < 0:
		timeout = 0 // there is none
	case timeout == 0:
		timeout = time.Nanosecond // at once, unless it is the last to arrive
	}
	release, err := b.host.Arrive(ctx, runKey(a.Run), barriers.Arrival{
		Run: spec.BarrierRun{Generation: a.Generation}, Task: a.Task, Name: a.Name, Key: a.Key,
		Participants: a.Participants, Timeout: timeout,
	})
	var (
		broken *barriers.BrokenError
		others *barriers.ParticipantsError
	)
	switch {
	case errors.As(err, &broken):
		standing := standingOf(broken, a.Participants, time.Now())
		return taskapi.Release{}, &taskapi.BarrierError{Timeout: broken.Why == spec.BarrierTimeout, Message: err.Error(), Standing: standing}
	case errors.As(err, &others):
		return taskapi.Release{}, &taskapi.BarrierError{Message: err.Error()}
	case err != nil:
		return taskapi.Release{}, err
	}
	return taskapi.Release{Round: release.Round + 1, Index: slices.Index(a.Participants, a.Task), Parties: len(a.Participants)}, nil
}

// standingOf is how a round stood when it broke. The round has waited for its missing
// since it was opened, except for those who had arrived and gone away: so the earliest
// of these times says when it was opened, as it does for a local barrier.
func standingOf(broken *barriers.BrokenError, participants []string, now time.Time) *taskapi.Standing {
	s := &taskapi.Standing{Name: broken.Name, Round: broken.Round + 1, Arrived: []string{}, Missing: []string{}}
	var opened time.Time
	for _, m := range broken.Missing {
		s.Missing = append(s.Missing, m.Task)
		if opened.IsZero() || m.Since.Before(opened) {
			opened = m.Since
		}
	}
	for _, task := range participants {
		if !slices.Contains(s.Missing, task) {
			s.Arrived = append(s.Arrived, task)
		}
	}
	if !opened.IsZero() {
		s.Since = opened.UTC().Format(time.RFC3339)
		s.Waited = now.Sub(opened).Seconds()
	}
	return s
}
