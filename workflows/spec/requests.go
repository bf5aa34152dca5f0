package spec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Update is an update for a run's workflow, with input Q and result A.
type Update[Q Request, A any] struct {
	Name string
	// Doc describes the update in a sentence.
	Doc string
	// OnHosts is the activity that implements the update on the tasks' hosts. It is nil if the
	// workflow implements the update.
	OnHosts func(Requests, context.Context, HostRequest[Q]) (RequestAnswer, error)
}

// String returns the name of the update.
func (u Update[Q, A]) String() string { return u.Name }

// A run's updates. Package lifecycle defines the rules for each of them.
var (
	UpdateTerminateTask = Update[TaskRequest, RequestAnswer]{"terminate-task", "Terminates tasks; their exits are ignored.", Requests.TerminateTasks}
	UpdateTerminateAll  = Update[TerminateAllRequest, RequestAnswer]{"terminate-all", "Terminates all tasks, by default with SIGKILL.", nil}
	UpdateRestartTask   = Update[TaskRequest, RequestAnswer]{"restart-task", "Stops tasks and starts them again.", Requests.RestartTasks}
	UpdateSignalTask    = Update[SignalRequest, RequestAnswer]{"signal-task", "Sends a signal to tasks.", Requests.SignalTasks}
	UpdateStartTask     = Update[StartTaskRequest, RequestAnswer]{"start-task", "Starts a task that has exited, or one that is not in the spec.", nil}
	UpdateCaptureStacks = Update[StacksRequest, RequestAnswer]{"capture-stacks", "Saves processes' stacks.", Requests.CaptureStacks}
	UpdateRequestStop   = Update[StopRequest, RequestAnswer]{"request-stop", "Stops the run, with a grace period.", nil}
	UpdateStopTogether  = Update[TogetherRequest, Stopping]{"stop-together", "Stops all tasks gracefully.", nil}
	UpdateNotice        = Update[NoticeRequest, Stopping]{"notice", "Notifies the tasks that they will be stopped.", nil}
	UpdateSilent        = Update[SilentRequest, RequestAnswer]{"silent", "Reports that all tasks on a host are silent.", nil}
)

// Requests are operator requests to a host. Each returns the tasks that had a process when the
// request arrived. The tasks' RunTask activities remain open, observe the processes' exits, and
// judge them.
type Requests interface {
	// TerminateTasks stops processes; with auto_restart they restart.
	TerminateTasks(ctx context.Context, in HostRequest[TaskRequest]) (RequestAnswer, error)
	// RestartTasks stops processes and always restarts them.
	RestartTasks(ctx context.Context, in HostRequest[TaskRequest]) (RequestAnswer, error)
	// SignalTasks sends a signal to processes.
	SignalTasks(ctx context.Context, in HostRequest[SignalRequest]) (RequestAnswer, error)
	// CaptureStacks writes processes' stacks to files. Its answer contains at most
	// [stacktree.HostBytes] of stacks.
	CaptureStacks(ctx context.Context, in HostRequest[StacksRequest]) (RequestAnswer, error)
}

// HostRequest is a request to a generation's tasks on one host.
type HostRequest[Q any] struct {
	Group
	Request Q `json:"request"`
}

// Group identifies a run's generation, so that a late activity does not affect the next one.
type Group struct {
	// Run is the execution that identifies the run to hosts, if it differs from the calling
	// execution.
	Run string `json:"run,omitempty"`
	// Generation counts the group's launches, from 0.
	Generation int `json:"generation,omitempty"`
}

// Request is an update's input.
type Request interface {
	// Validate checks everything except the tasks, which the run checks. The error is an
	// [*InvalidRequestError] with all problems.
	Validate() error
}

// TasksRequest is a request implemented on hosts.
type TasksRequest interface {
	Request
	// For returns the request restricted to tasks.
	For(tasks []string) TasksRequest
}

func (r TaskRequest) For(tasks []string) TasksRequest   { r.Tasks = tasks; return r }
func (r SignalRequest) For(tasks []string) TasksRequest { r.Tasks = tasks; return r }
func (r StacksRequest) For(tasks []string) TasksRequest { r.Tasks = tasks; return r }

// Requests come from people in an incident, often through `temporal workflow update`, which
// silently accepts a misspelled field. Therefore, a request with a missing field is refused.

// TaskRequest is the input of [UpdateTerminateTask] and [UpdateRestartTask]. Tasks are named,
// such as "worker-1".
type TaskRequest struct {
	Tasks []string `json:"tasks"`
	// Signal replaces the spec's stop signal.
	Signal string `json:"signal,omitempty"`
	// Grace replaces the spec's stop grace.
	Grace *Duration `json:"grace,omitempty"`
}

// Validate checks everything except whether the tasks exist, which the run checks. The error is
// an [*InvalidRequestError] with all problems.
func (r TaskRequest) Validate() error {
	c := &checker{}
	checkTaskNames(c, r.Tasks)
	if r.Signal != "" {
		checkSignal(c, "signal", r.Signal)
	}
	checkDuration(c, "grace", r.Grace, orZero)
	return c.requestError()
}

// TerminateAllRequest is the input of [UpdateTerminateAll].
type TerminateAllRequest struct {
	// Signal replaces the default signal. The default is the spec's stop signal if Grace is set,
	// and otherwise SIGKILL, as in TensorFlow.
	Signal string `json:"signal,omitempty"`
	// Grace is the time from Signal to SIGKILL. It defaults to the spec's grace.
	Grace *Duration `json:"grace,omitempty"`
}

// Validate checks the request. The error is an [*InvalidRequestError].
func (r TerminateAllRequest) Validate() error {
	c := &checker{}
	if r.Signal != "" {
		checkSignal(c, "signal", r.Signal)
	}
	checkDuration(c, "grace", r.Grace, orZero)
	return c.requestError()
}

// SignalRequest is the input of [UpdateSignalTask].
type SignalRequest struct {
	Tasks  []string `json:"tasks"`
	Signal string   `json:"signal"`
}

// Validate checks everything except whether the tasks exist, which the run checks. The error is
// an [*InvalidRequestError] with all problems.
func (r SignalRequest) Validate() error {
	c := &checker{}
	checkTaskNames(c, r.Tasks)
	if r.Signal == "" {
		c.add("signal", "missing", `use a signal's name, such as "SIGUSR1"`)
	} else {
		checkSignal(c, "signal", r.Signal)
	}
	return c.requestError()
}

// StartTaskRequest is the input of [UpdateStartTask]. It names either a task that has ended or a
// new task, which may be of a new type.
type StartTaskRequest struct {
	Task string `json:"task"`
	// Command, Args and Dir replace the fields of the task's group, and Env is merged over its Env.
	// If Command is set, the group's args are not used. An empty list of Args also removes them. A
	// task of a type that is not in the spec uses the run's command unless Command is set.
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitzero"`
	Dir     string   `json:"dir,omitempty"`
	Env     Env      `json:"env,omitempty"`
	// New allows an index that leaves a gap after the existing tasks. Otherwise, such an index is
	// refused as a probable mistake.
	New bool `json:"new,omitempty"`
	// Signature covers the rest of the request and the run's ID.
	Signature *Signature `json:"signature,omitempty"`
}

// Validate checks everything except whether the task may start now, which the run checks. The
// error is an [*InvalidRequestError] with all problems.
func (r StartTaskRequest) Validate() error {
	c := &checker{}
	checkTaskName(c, "task", r.Task)
	checkCommand(c, "command", r.Command)
	checkArgs(c, "args", r.Args)
	checkDir(c, "dir", r.Dir)
	r.Env.check(c, "env")
	checkExecBytes(c, "", stringsBytes(r.Command)+stringsBytes(r.Args)+envBytes(r.Env))
	return c.requestError()
}

// AsSigned returns the part of the request that its signature covers.
func (r StartTaskRequest) AsSigned() StartTaskRequest {
	r.Signature = nil
	return r
}

// Size returns the approximate size of the request, in bytes.
func (r StartTaskRequest) Size() int {
	size := len(r.Task) + len(r.Dir) + stringsBytes(r.Command) + stringsBytes(r.Args) + envBytes(r.Env)
	if r.Signature != nil {
		size += len(r.Signature.Expires) + len(r.Signature.SSH)
	}
	return size
}

// StopRequest is the input of [UpdateRequestStop].
type StopRequest struct {
	// Reason is shown to people.
	Reason string `json:"reason,omitempty"`
}

// Validate accepts every request, because any reason is valid.
func (r StopRequest) Validate() error { return nil }

// StacksRequest is the input of [UpdateCaptureStacks].
type StacksRequest struct {
	// Tasks limits the request to these tasks. If empty, it applies to all running tasks.
	Tasks []string `json:"tasks,omitempty"`
	// Again is the time after the capture when the hosts capture the stacks a second time, to see
	// which tasks moved. It is at most [MaxAgain]. There is no second capture if Again is nil or 0,
	// or if the first one took a host longer than this.
	Again *Duration `json:"again,omitempty"`
}

// MaxAgain limits the time between the two captures of stacks.
const MaxAgain = 3 * time.Second

// Validate checks everything except whether the tasks exist, which the run checks. The error is
// an [*InvalidRequestError] with all problems.
func (r StacksRequest) Validate() error {
	c := &checker{}
	for i, name := range r.Tasks {
		checkTaskName(c, indexPath("tasks", i), name)
	}
	if again := r.Again.Std(); again < 0 || again > MaxAgain {
		c.add("again", "it is "+again.String(), fmt.Sprintf("use 0s to %s", MaxAgain))
	}
	return c.requestError()
}

// SilentRequest is the input of [UpdateSilent].
type SilentRequest struct {
	// Host is the host that sends the request, and Tasks lists its tasks in the generation.
	Host       string   `json:"host"`
	Tasks      []string `json:"tasks"`
	Generation int      `json:"generation,omitempty"`
}

// Validate checks the request without the run. The error is an [*InvalidRequestError] with all
// problems.
func (r SilentRequest) Validate() error {
	c := &checker{}
	checkTaskNames(c, r.Tasks)
	return c.requestError()
}

// RequestAnswer is an update's answer. It lists the tasks that the update reached.
type RequestAnswer struct {
	Tasks []string `json:"tasks"`
	// Problems lists tasks on hosts that could not meet the request although at least one other
	// host could.
	Problems []TaskProblem `json:"problems,omitempty"`
	// Files are the paths to captured stacks, by task, on each task's host.
	Files map[string]string `json:"files,omitempty"`
	// Stacks contains the captured stacks of the main threads, by rank; see [stacktree.Explain].
	Stacks stacktree.Tree `json:"stacks,omitzero"`
	// Motion is the result of the second capture.
	Motion stacktree.Motion `json:"motion,omitzero"`
	// Note describes what is missing from the answer or, if the request did not reach any task, the
	// request's effect on the run.
	Note string `json:"note,omitempty"`
}

// A server terminates a run that sends an answer of more than 2 MiB.
const (
	maxAnswerFiles    = 1 << 20
	maxAnswerProblems = 256 << 10
)

// Bounded drops files and problems, with a note, if the answer is too large for the server.
func (a RequestAnswer) Bounded() RequestAnswer {
	var left []string
	size := 0
	keep := slices.IndexFunc(a.Problems, func(p TaskProblem) bool {
		size += len(p.Task) + len(p.Message)
		return size > maxAnswerProblems
	})
	if keep >= 0 {
		left = append(left, fmt.Sprintf("the problems of %d tasks", len(a.Problems)-keep))
		a.Problems = a.Problems[:keep]
	}
	size = 0
	files := make(map[string]string, len(a.Files))
	//workflowcheck:ignore the keys are sorted
	for _, task := range slices.Sorted(maps.Keys(a.Files)) {
		if size += len(task) + len(a.Files[task]); size <= maxAnswerFiles {
			files[task] = a.Files[task]
		}
	}
	if n := len(a.Files) - len(files); n > 0 {
		left = append(left, fmt.Sprintf("the files of %d tasks", n))
		a.Files = files
	}
	if len(left) > 0 {
		a.Note = strings.Join(left, " and ") + " are omitted from the answer; ask for fewer tasks"
	}
	return a
}

// TaskProblem is the reason why a request cannot be met for a task. The error of a refusal
// contains TaskProblems in its details.
type TaskProblem struct {
	Task    string `json:"task"`
	Message string `json:"message"`
}

func checkTaskNames(c *checker, tasks []string) {
	if len(tasks) == 0 {
		c.add("tasks", "missing", `name the tasks, such as ["worker-1"]`)
	}
	for i, name := range tasks {
		checkTaskName(c, indexPath("tasks", i), name)
	}
}

func checkTaskName(c *checker, path, name string) {
	_, _, err := ParseTaskName(name)
	c.addError(path, err)
}
