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
		standing := &taskapi.Standing{Name: a.Name, Round: broken.Round + 1, Arrived: []string{}, Missing: []string{}}
		for _, m := range broken.Missing {
			standing.Missing = append(standing.Missing, m.Task)
			standing.Since = m.Since.UTC().Format(time.RFC3339Nano)
			standing.Waited = time.Since(m.Since).Seconds()
		}
		for _, task := range a.Participants {
			if !slices.Contains(standing.Missing, task) {
				standing.Arrived = append(standing.Arrived, task)
			}
		}
		return taskapi.Release{}, &taskapi.BarrierError{Timeout: broken.Why == spec.BarrierTimeout, Message: err.Error(), Standing: standing}
	case errors.As(err, &others):
		return taskapi.Release{}, &taskapi.BarrierError{Message: err.Error()}
	case err != nil:
		return taskapi.Release{}, err
	}
	return taskapi.Release{Round: release.Round + 1, Index: slices.Index(a.Participants, a.Task), Parties: len(a.Participants)}, nil
}
