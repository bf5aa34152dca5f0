package hostapi

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks has the short activities for running tasks.
type Tasks interface {
	// StopSilentTasks ends processes for their silence: they have failed.
	StopSilentTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// SealTasks makes the host restart nothing any more.
	SealTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// CheckStart checks whether a task could be started.
	CheckStart(ctx context.Context, in CheckStartInput) (None, error)
	// SettleTasks ends what the host may still run of the generation, or an earlier one, and
	// returns once that is gone.
	SettleTasks(ctx context.Context, in TasksInput) (spec.RequestAnswer, error)
	// Unreserve gives back what the host has reserved for the generation, or an earlier one.
	Unreserve(ctx context.Context, in Group) (None, error)
	// TellStopping tells the tasks whether they stop together.
	TellStopping(ctx context.Context, in TellStoppingInput) (None, error)
}

// TasksInput names tasks of a generation.
type TasksInput struct {
	Group
	Tasks []string `json:"tasks"`
}

// CheckStartInput is the input of CheckStart.
type CheckStartInput struct {
	Group
	Task spec.Task `json:"task"`
}

// TellStoppingInput is the input of TellStopping.
type TellStoppingInput struct {
	Group
	Stopping spec.Stopping `json:"stopping"`
}
