package hostapi

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks contains the short activities for running tasks.
type Tasks interface {
	// StopTasks stops processes whose RunTasks are being canceled.
	StopTasks(ctx context.Context, in TasksInput) (None, error)
	// StopSilentTasks stops processes that are silent, and marks them as failed.
	StopSilentTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// SealTasks prevents all further restarts on the host.
	SealTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// CheckStart checks whether a task could be started.
	CheckStart(ctx context.Context, in CheckStartInput) (None, error)
	// SettleTasks stops the processes that the host may still run for this or an earlier
	// generation, and returns once they are gone.
	SettleTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// Unreserve releases the host's reservations for this and earlier generations.
	Unreserve(ctx context.Context, in spec.Group) (None, error)
	// TellStopping informs the tasks whether they are stopping together.
	TellStopping(ctx context.Context, in TellStoppingInput) (None, error)
}

// TasksInput lists tasks of a generation.
type TasksInput struct {
	spec.Group
	Tasks []string `json:"tasks"`
}

// CheckStartInput is the input of CheckStart.
type CheckStartInput struct {
	spec.Group
	Task spec.Task `json:"task"`
}

// TellStoppingInput is the input of TellStopping.
type TellStoppingInput struct {
	spec.Group
	Stopping spec.Stopping `json:"stopping"`
}
