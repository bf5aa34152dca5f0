package spec

import "github.com/clusterrun/clusterrun/workflows/stacktree"

// TaskRequest is the input of [UpdateTerminateTask] and [UpdateRestartTask]:
// the tasks by name, such as "worker-1".
type TaskRequest struct {
	Tasks []string `json:"tasks"`
	// Signal replaces the spec's stop signal.
	Signal string `json:"signal,omitempty"`
	// Grace replaces the spec's stop grace.
	Grace *Duration `json:"grace,omitempty"`
}

// TerminateAllRequest is the input of [UpdateTerminateAll].
type TerminateAllRequest struct {
	// Signal replaces SIGKILL, which is the default here as in the seed.
	Signal string `json:"signal,omitempty"`
	// Grace is the time from Signal to SIGKILL. Default: the spec's.
	Grace *Duration `json:"grace,omitempty"`
}

// SignalRequest is the input of [UpdateSignalTask].
type SignalRequest struct {
	Tasks  []string `json:"tasks"`
	Signal string   `json:"signal"`
}

// StartTaskRequest is the input of [UpdateStartTask]: a task of the spec that
// has ended, or one outside the spec, whose type may be new.
type StartTaskRequest struct {
	Task string `json:"task"`
	// Command, Args and Dir replace those of the task's group, and Env is laid
	// over it. With a Command of its own the group's args are not used; an
	// empty list of Args takes them away. A type outside the spec takes the
	// run's command unless it has one here.
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitzero"`
	Dir     string   `json:"dir,omitempty"`
	Env     Env      `json:"env,omitempty"`
	// New allows an index that leaves a gap after the tasks there are. Without it
	// such a task is taken for a slip of the pen.
	New bool `json:"new,omitempty"`
	// Signature is of the request without it, and of the ID of the run.
	Signature *Signature `json:"signature,omitempty"`
}

// StopRequest is the input of [UpdateRequestStop].
type StopRequest struct {
	// Reason is shown to people.
	Reason string `json:"reason,omitempty"`
}

// StacksRequest is the input of [UpdateCaptureStacks].
type StacksRequest struct {
	// Tasks limits it to these. Empty: all that run.
	Tasks []string `json:"tasks,omitempty"`
}

// SilentRequest is the input of [UpdateSilent].
type SilentRequest struct {
	// Host has sent it, and Tasks are those of the generation that it runs.
	Host       string   `json:"host"`
	Tasks      []string `json:"tasks"`
	Generation int      `json:"generation,omitempty"`
}

// RequestAnswer is what an update answers: the tasks it reached.
type RequestAnswer struct {
	Tasks []string `json:"tasks"`
	// Problems are tasks for which it could not be met on their host, where it was
	// for others.
	Problems []TaskProblem `json:"problems,omitempty"`
	// Files are the paths of what was captured, by task, each on its host.
	Files map[string]string `json:"files,omitempty"`
	// Stacks has what was captured of the main threads, by rank; see
	// [stacktree.Explain].
	Stacks stacktree.Tree `json:"stacks,omitzero"`
	// Note says what the request did to the run where there was no task to reach.
	Note string `json:"note,omitempty"`
}

// TaskProblem says why a request cannot be met for one of its tasks. A refusal has
// them in the details of its error.
type TaskProblem struct {
	Task    string `json:"task"`
	Message string `json:"message"`
}
