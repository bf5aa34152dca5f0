package hostapi

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks has the short activities for running tasks.
type Tasks interface {
	// StopSilentTasks ends processes for their silence: they have failed.
	StopSilentTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// SealTasks makes the host restart nothing from now on.
	SealTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// CheckStart checks whether a task could be started.
	CheckStart(ctx context.Context, in CheckStartInput) (None, error)
	// SettleTasks ends the processes that the host may still run of the generation, or of an
	// earlier one, and returns once they are gone.
	SettleTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// Unreserve gives back the host's reservations for the generation, and for earlier ones.
	Unreserve(ctx context.Context, in spec.Group) (None, error)
	// TellStopping informs the tasks whether they stop together.
	TellStopping(ctx context.Context, in TellStoppingInput) (None, error)
}

// TasksInput names tasks of a generation.
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
