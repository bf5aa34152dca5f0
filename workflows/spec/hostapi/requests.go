package hostapi

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Requests carry out requests of operators. They answer with the tasks that had a process to
// reach. The RunTask activities of the tasks stay open: they see the processes end, and judge
// the ends.
type Requests interface {
	// TerminateTasks ends processes; with auto_restart they start again.
	TerminateTasks(ctx context.Context, in TerminateTasksInput) (spec.RequestAnswer, error)
	// RestartTasks ends processes and starts them again, in any case.
	RestartTasks(ctx context.Context, in RestartTasksInput) (spec.RequestAnswer, error)
	// SignalTasks sends a signal to processes.
	SignalTasks(ctx context.Context, in SignalTasksInput) (spec.RequestAnswer, error)
	// CaptureStacks writes the stacks of processes to files. Its answer has at most
	// [stacktree.HostBytes] of stacks.
	CaptureStacks(ctx context.Context, in CaptureStacksInput) (spec.RequestAnswer, error)
	// AllowExec allows a command to be executed with a task.
	AllowExec(ctx context.Context, in AllowExecInput) (spec.RequestAnswer, error)
}

// TerminateTasksInput is the input of TerminateTasks.
type TerminateTasksInput struct {
	Group
	spec.TaskRequest
}

// RestartTasksInput is the input of RestartTasks.
type RestartTasksInput struct {
	Group
	spec.TaskRequest
}

// SignalTasksInput is the input of SignalTasks.
type SignalTasksInput struct {
	Group
	spec.SignalRequest
}

// CaptureStacksInput is the input of CaptureStacks.
type CaptureStacksInput struct {
	Group
	spec.StacksRequest
}

// AllowExecInput is the input of AllowExec.
type AllowExecInput struct {
	Group
	spec.ExecRequest
}
