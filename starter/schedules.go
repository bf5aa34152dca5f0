package starter

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ScheduleSummary is a schedule of runs, as lists show it.
type ScheduleSummary struct {
	ID     string      `json:"schedule_id"`
	Paused bool        `json:"paused,omitempty"`
	Note   string      `json:"note,omitempty"` // why it was paused or resumed
	Next   []time.Time `json:"next"`           // the next starts of runs, or empty
}

// Schedules returns the schedules of runs on a server, of all users.
func Schedules(ctx context.Context, c client.Client) ([]ScheduleSummary, error) {
	list, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: lastPage})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	all := []ScheduleSummary{}
	for list.HasNext() {
		s, err := list.Next()
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if s.WorkflowType.Name != spec.WorkflowType {
			continue
		}
		next := s.NextActionTimes
		if next == nil {
			next = []time.Time{}
		}
		all = append(all, ScheduleSummary{ID: s.ID, Paused: s.Paused, Note: s.Note, Next: next})
	}
	return all, nil
}

// NoScheduleError reports that the server has no schedule of that ID.
type NoScheduleError struct{ ID string }

func (e *NoScheduleError) Error() string {
	return fmt.Sprintf("no schedule %q on this server; `clusterrun schedule list` shows all schedules", e.ID)
}

// DeleteSchedule stops a schedule from starting runs. Runs that it has started continue.
func DeleteSchedule(ctx context.Context, c client.Client, id string) error {
	return scheduleChanged("delete", id, c.ScheduleClient().GetHandle(ctx, id).Delete(ctx))
}

// PauseSchedule stops a schedule from starting runs until [ResumeSchedule].
func PauseSchedule(ctx context.Context, c client.Client, id, reason string) error {
	return scheduleChanged("pause", id, c.ScheduleClient().GetHandle(ctx, id).Pause(ctx, client.SchedulePauseOptions{Note: cmp.Or(reason, "paused by clusterrun")}))
}

// ResumeSchedule lets a paused schedule start runs again.
func ResumeSchedule(ctx context.Context, c client.Client, id string) error {
	return scheduleChanged("resume", id, c.ScheduleClient().GetHandle(ctx, id).Unpause(ctx, client.ScheduleUnpauseOptions{Note: "resumed by clusterrun"}))
}

// scheduleChanged returns the error of a request to change a schedule.
func scheduleChanged(what, id string, err error) error {
	switch {
	case servererror.IsNotFound(err):
		return &NoScheduleError{id}
	case err != nil:
		return fmt.Errorf("%s schedule %s: %w", what, id, err)
	}
	return nil
}
