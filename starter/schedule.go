package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Schedule configures when the server starts runs.
type Schedule struct {
	// Cron holds times in the form of cron(5). Every is the time between runs, counted from the
	// epoch. One of them must be set.
	Cron  []string
	Every time.Duration
	// TimeZone is the time zone of Cron, such as Europe/Berlin. Default: UTC.
	TimeZone string
	// Overlap is the policy for a run that is due before the previous one has ended. Default:
	// it is skipped.
	Overlap enumspb.ScheduleOverlapPolicy
	// CatchUp is the longest delay with which a run may start if it was due while the server
	// was away, at least ten seconds. Default: the server's, which is a year.
	CatchUp time.Duration
	// PauseOnFailure pauses the schedule after a run that has failed.
	PauseOnFailure bool
}

// Check refuses times that the server would refuse, or round silently. Its errors use the names
// of the flags of `clusterrun schedule create`.
func (s Schedule) Check() error {
	switch {
	case len(s.Cron) == 0 && s.Every == 0:
		return errors.New("no start time: give --cron or --every")
	case s.Every != 0 && s.Every < time.Second:
		return fmt.Errorf("--every %s: give 1s or more", s.Every)
	case s.CatchUp != 0 && s.CatchUp < 10*time.Second:
		return fmt.Errorf("--catchup-window %s: give 10s or more", s.CatchUp)
	case s.Every%time.Second != 0:
		return fmt.Errorf("--every %s: give whole seconds, such as %s", s.Every, s.Every.Round(time.Second))
	case s.CatchUp%time.Second != 0:
		return fmt.Errorf("--catchup-window %s: give whole seconds, such as %s", s.CatchUp, s.CatchUp.Round(time.Second))
	case s.TimeZone != "" && len(s.Cron) == 0:
		return errors.New("--timezone needs --cron; --every counts from the epoch in every zone")
	}
	return nil
}

// ScheduleExistsError reports that the ID of a schedule is in use.
type ScheduleExistsError struct{ ID string }

func (e *ScheduleExistsError) Error() string {
	return fmt.Sprintf("a schedule %q exists already; choose another ID, or delete it: clusterrun schedule delete %s", e.ID, e.ID)
}

// CreateSchedule makes the server start runs of a spec by a schedule. It returns the ID of the
// schedule, which is the ID in the options, and the time of the first run, or zero if no run
// ever starts. The ID of each run is the schedule's ID with the time at which the run was due.
// CreateSchedule refuses a spec with all of its problems, wrong times with the error of
// [Schedule.Check], and an ID in use with [*ScheduleExistsError].
func CreateSchedule(ctx context.Context, c client.Client, s *spec.RunSpec, o Options, when Schedule) (id string, next []time.Time, err error) {
	if err := o.complete(s); err != nil {
		return "", nil, err
	}
	if err := when.Check(); err != nil {
		return "", nil, err
	}
	times := client.ScheduleSpec{CronExpressions: when.Cron, TimeZoneName: when.TimeZone}
	if when.Every > 0 {
		times.Intervals = []client.ScheduleIntervalSpec{{Every: when.Every}}
	}
	var h client.ScheduleHandle
	err = runs.WithAttributes(runs.Attributes(s, o.Owner, o.Host), func(known temporal.SearchAttributes) (err error) {
		h, err = c.ScheduleClient().Create(ctx, client.ScheduleOptions{
			ID: o.ID, Spec: times, Overlap: when.Overlap, CatchupWindow: when.CatchUp, PauseOnFailure: when.PauseOnFailure,
			// This is as in Start. Conflicts of IDs cannot occur, because the server adds the
			// time to them.
			Action: &client.ScheduleWorkflowAction{
				ID: o.ID, Workflow: spec.WorkflowType, Args: []any{s}, TaskQueue: o.Queue,
				WorkflowTaskTimeout: spec.WorkflowTaskTimeout,
				Memo:                runs.Memo(s, o.Owner), TypedSearchAttributes: known, StaticSummary: runs.Summary(s),
			},
		})
		return err
	})
	switch {
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return "", nil, &ScheduleExistsError{o.ID}
	case err != nil:
		return "", nil, fmt.Errorf("create schedule %s: %w", o.ID, err)
	}
	d, err := h.Describe(ctx)
	if err != nil {
		return o.ID, nil, fmt.Errorf("schedule %s was created, but its next start is unknown: %w", o.ID, err)
	}
	return o.ID, d.Info.NextActionTimes, nil
}
