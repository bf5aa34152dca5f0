package hostapi

import "github.com/clusterrun/clusterrun/workflows/spec"

// The other short activities on the host of running tasks.
const (
	// StopSilentTasks ends processes for their silence: they have failed.
	StopSilentTasks Activity[TasksInput, spec.RequestAnswer] = "StopSilentTasks"
	// SealTasks makes the host restart nothing any more.
	SealTasks Activity[TasksInput, spec.RequestAnswer] = "SealTasks"
	// CheckStart checks whether a task could be started.
	CheckStart Activity[CheckStartInput, None] = "CheckStart"
	// SettleTasks ends what the host may still run of the generation, or an earlier one, and
	// returns once that is gone.
	SettleTasks Activity[TasksInput, spec.RequestAnswer] = "SettleTasks"
	// Unreserve gives back what the host has reserved for the generation, or an earlier one.
	Unreserve Activity[Group, None] = "Unreserve"
	// TellStopping tells the tasks whether they stop together.
	TellStopping Activity[TellStoppingInput, None] = "TellStopping"
)

// TasksInput names tasks of a generation.
type TasksInput struct {
	Group
	Tasks []string `json:"tasks"`
}

// CheckStartInput is the input of [CheckStart].
type CheckStartInput struct {
	Group
	Task spec.Task `json:"task"`
}

// TellStoppingInput is the input of [TellStopping].
type TellStoppingInput struct {
	Group
	Stopping spec.Stopping `json:"stopping"`
}
