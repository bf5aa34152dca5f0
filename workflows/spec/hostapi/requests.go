package hostapi

import "github.com/clusterrun/clusterrun/workflows/spec"

// The activities that carry out requests. They answer with the tasks that had a process to
// reach. The RunTask activities of the tasks stay open: they see the processes end, and judge
// the ends.
const (
	// TerminateTasks ends processes; with auto_restart they start again.
	TerminateTasks Activity[TerminateTasksInput, spec.RequestAnswer] = "TerminateTasks"
	// RestartTasks ends processes and starts them again, in any case.
	RestartTasks Activity[RestartTasksInput, spec.RequestAnswer] = "RestartTasks"
	// SignalTasks sends a signal to processes.
	SignalTasks Activity[SignalTasksInput, spec.RequestAnswer] = "SignalTasks"
	// CaptureStacks writes the stacks of processes to files. Its answer has at most
	// [stacktree.HostBytes] of stacks.
	CaptureStacks Activity[CaptureStacksInput, spec.RequestAnswer] = "CaptureStacks"
)

// TerminateTasksInput is the input of [TerminateTasks].
type TerminateTasksInput struct {
	Group
	spec.TaskRequest
}

// RestartTasksInput is the input of [RestartTasks].
type RestartTasksInput struct {
	Group
	spec.TaskRequest
}

// SignalTasksInput is the input of [SignalTasks].
type SignalTasksInput struct {
	Group
	spec.SignalRequest
}

// CaptureStacksInput is the input of [CaptureStacks].
type CaptureStacksInput struct {
	Group
	spec.StacksRequest
}
