package spec

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Names on the wire. They are a contract with the temporal CLI, the Web UI and other versions of
// clusterrun. A golden test lists them.
const (
	// WorkflowType is the workflow type of a run.
	WorkflowType = "ClusterRun"
	// BarrierWorkflowType is the workflow type of a barrier's round; see [BarrierID].
	BarrierWorkflowType = "Barrier"
	// GroupWorkflowType is the workflow type that carries a large run's tasks on one host; see
	// [TaskGroupWorkflowID].
	GroupWorkflowType = "TaskGroup"
	// SharedWorkflowType is the type of workflows that store a value for all hosts of a large run;
	// see [SharedValueWorkflowID].
	SharedWorkflowType = "Shared"
	// FleetWorkflowType is the workflow type that tracks a queue's hosts and the runs waiting for
	// free slots on them; see [FleetID].
	FleetWorkflowType = "Fleet"
	// TaskQueue is the queue of shared workflow workers. Host queues are named after it; see
	// [HostsQueue].
	TaskQueue = "clusterrun"

	QueryStatus = "status"
	// QueryBarrier returns a round's arrived and missing tasks.
	QueryBarrier = "barrier"

	// QueryHosts and QueryQueue return a fleet's hosts and waiting runs. QueryPlan returns where
	// a run would be placed now.
	QueryHosts = "hosts"
	QueryQueue = "queue"
	QueryPlan  = "plan"

	// SignalArrive carries arrivals and withdrawals to a round.
	SignalArrive = "arrive"
	// SignalFleet carries a run's requests and reports to its fleet, and the fleet's answers to
	// the run.
	SignalFleet = "fleet"

	// SignalEnded reports a group's ended tasks to the run.
	SignalEnded = "ended"

	// UpdateJoin adds a host to a fleet. UpdateCordon keeps new tasks off a host, and drains it
	// on request; UpdateUncordon reverts that.
	UpdateJoin     = "join"
	UpdateCordon   = "cordon"
	UpdateUncordon = "uncordon"

	// ActivityHostLease holds a host's place in its fleet. ActivityFleetCheck finds runs that
	// closed without notifying their fleet.
	ActivityHostLease  = "HostLease"
	ActivityFleetCheck = "FleetCheck"
	// ActivityKnownAttributes returns the run search attributes that are registered in the
	// namespace.
	ActivityKnownAttributes = "KnownAttributes"
	// ActivityRunEnd waits until a run closes.
	ActivityRunEnd = "RunEnd"
	// ActivityBarrierCheck checks whether missing participants can still arrive.
	ActivityBarrierCheck = "BarrierCheck"
)

// Error types of a failed run.
const (
	// ErrInvalidRunSpec means that the spec was refused before anything started.
	ErrInvalidRunSpec = "InvalidRunSpec"
	// ErrPlacement means that the tasks could not be placed on hosts.
	ErrPlacement = "PlacementError"
	// ErrSkipped means that an earlier run's outcome prevented this run.
	ErrSkipped = "SkippedError"
	// ErrSubprocess means that a program reported an error.
	ErrSubprocess = "SubprocessError"
	// ErrSubprocessTimeout means that the run timed out, or that tasks were still running after the
	// grace of stopping together.
	ErrSubprocessTimeout = "SubprocessTimeoutError"
	// ErrUnexpectedExit means that a process failed without reporting an error.
	ErrUnexpectedExit = "UnexpectedSubprocessExitError"
	// ErrHostLost means that processes died with their host.
	ErrHostLost = "HostLostError"
)

// ErrTrials is the error type of a sweep with failed trials.
const ErrTrials = "TrialsError"

// MemoStarted is the memo field with a run's start time. It is set when the run continues in
// another workflow execution.
const MemoStarted = "started"

// ErrRemains is the error type of RunTask while the task waits for an earlier process that has
// survived SIGKILL.
const ErrRemains = "Remains"

// ErrRestart is the error type of RunTask when the task gets another process. Its message is the
// reason, and its details are the number of earlier restarts.
const ErrRestart = "Restart"

// ErrAway is the error type of RunTask when the process continues, and the next attempt adopts it.
const ErrAway = "HostWorkerAway"

// ErrNotify is the error type of a notification that was not accepted.
const ErrNotify = "NotifyError"

// Error types of refused updates.
const (
	// ErrRefused means that the run cannot meet the request in its current state.
	ErrRefused = "Refused"
	// ErrNotBegun means that the run cannot meet the request before its tasks start.
	ErrNotBegun = "NotBegun"
	// ErrInvalidRequest means that the run cannot meet the request in any state.
	ErrInvalidRequest = "InvalidRequest"
	// ErrTryAgain means that the next workflow execution, which starts in a moment, can meet the
	// request.
	ErrTryAgain = "TryAgain"
)

// PrivateQueue returns the workflow queue of a run that brings its own hosts. The ID must be hard
// to guess.
func PrivateQueue(id string) string { return TaskQueue + "/run/" + id }

// LocalQueue returns the private queue of a run with a single host worker. The ID must be hard to
// guess. The host uses the same queue, so that the server can return the activities that a workflow
// task schedules in its answer to that workflow task.
func LocalQueue(id string) string { return PrivateQueue("local/" + id) }

// IsLocalQueue reports whether a workflow queue belongs to a run with a single host worker.
func IsLocalQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, LocalQueue(""))
}

// AgentsQueue returns the workflow queue of a run that gets its hosts from agents. The ID must be
// hard to guess. The hosts form a separate fleet.
func AgentsQueue(id string) string { return TaskQueue + "/agents/" + id }

// IsAgentsQueue reports whether a workflow queue belongs to a run that gets its hosts from agents.
// An agent that leaves and rejoins is a new host.
func IsAgentsQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, AgentsQueue(""))
}

// IsPrivateQueue reports whether a workflow queue belongs to a run with its own hosts, which does
// not use a fleet.
func IsPrivateQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, PrivateQueue(""))
}

// FleetID returns the workflow ID of the fleet for a queue's hosts.
func FleetID(workflowQueue string) string { return workflowQueue + "/fleet" }

// HostsQueue returns the queue for reserving any host. It is derived from the run's workflow queue,
// so that runs on private queues stay on private hosts.
func HostsQueue(workflowQueue string) string { return hostQueue(workflowQueue, "/hosts") }

// HostQueue returns the queue for reserving the host with the given name.
func HostQueue(workflowQueue, host string) string {
	return hostQueue(workflowQueue, "/host/"+host)
}

// InstanceQueue returns the queue for all other activities of one host worker.
func InstanceQueue(workflowQueue, host, instance string) string {
	return hostQueue(workflowQueue, "/host/"+host+"/"+instance)
}

// HostOfQueue returns the host with the given [InstanceQueue], or "".
func HostOfQueue(instanceQueue string) string {
	_, rest, _ := strings.Cut(instanceQueue, "/host/")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func hostQueue(workflowQueue, part string) string {
	if IsLocalQueue(workflowQueue) {
		return workflowQueue
	}
	return workflowQueue + part
}

// TaskActivityID returns the RunTask activity's ID for a task launch. It is readable in the Web UI,
// and [TaskOfActivity] parses it.
func TaskActivityID(task string, generation, launch int) string {
	return fmt.Sprintf("%s/%d.%d", task, generation, launch)
}

// RetryActivityID returns the activity ID of a launch's nth offer after the first.
func RetryActivityID(id string, n int) string {
	if n == 0 {
		return id
	}
	return fmt.Sprintf("%s.%d", id, n)
}

// TaskOfActivity is the inverse of [TaskActivityID] and [RetryActivityID], except that it does not
// return the launch. ok is false for IDs of other activities.
func TaskOfActivity(id string) (task string, generation int, ok bool) {
	task, rest, _ := strings.Cut(id, "/")
	number, _, _ := strings.Cut(rest, ".")
	generation, err := strconv.Atoi(number)
	if err != nil {
		return "", 0, false
	}
	return task, generation, true
}

// TaskGroupWorkflowID returns the workflow ID of the nth group that an execution of a run's
// workflow starts on a host in a generation. It contains the full execution ID, since the IDs of
// executions that start in the same minute share their first digits.
func TaskGroupWorkflowID(workflowID, execution string, generation int, host string, n int) string {
	return fmt.Sprintf("%s%d/%s/%d", GroupIDPrefix(workflowID, execution), generation, url.PathEscape(host), n)
}

// GroupIDPrefix returns the prefix that all group IDs of a run's execution share.
func GroupIDPrefix(workflowID, execution string) string {
	return workflowID + "/group/" + execution + "/"
}

// IsGroupOf reports whether an ID belongs to one of the run's groups, in any execution.
func IsGroupOf(id, workflowID string) bool { return strings.HasPrefix(id, workflowID+"/group/") }

// GenerationOfGroup returns the generation in a group's workflow ID, or -1 for IDs of other
// workflows.
func GenerationOfGroup(id string) int {
	parts := strings.Split(id, "/")
	generation, err := strconv.Atoi(parts[max(0, len(parts)-3)])
	if err != nil {
		return -1
	}
	return generation
}

// HostOfGroup returns the host in a group's workflow ID.
func HostOfGroup(id string) string {
	parts := strings.Split(id, "/")
	host, err := url.PathUnescape(parts[max(0, len(parts)-2)])
	if err != nil {
		return ""
	}
	return host
}

// SharedValueWorkflowID returns the workflow ID of the nth value that a run's workflow execution
// shares with its hosts.
func SharedValueWorkflowID(workflowID, execution string, n int) string {
	return fmt.Sprintf("%s/shared/%s/%d", workflowID, execution, n)
}

// NoticeID returns the ID of a run's nth notice, counted from 1. execution is the run's first
// execution.
func NoticeID(workflowID, execution string, n int) string {
	return fmt.Sprintf("%s/notice/%s/%d", workflowID, execution, n)
}

// Names of runs' search attributes. The starter sets those that are registered in the namespace; if
// it does not, the workflow does. The workflow also updates them. A run's queue is in the server's
// own attribute TaskQueue.
const (
	// AttributeOwner is the user who started the run.
	AttributeOwner = "ClusterRunOwner"
	// AttributeVerdict is the run's final [Verdict].
	AttributeVerdict = "ClusterRunVerdict"
	// AttributeHost lists the current or last hosts of a run's tasks, as many as fit.
	AttributeHost = "ClusterRunHost"
	// AttributeName is the name in the spec.
	AttributeName = "ClusterRunName"
	// AttributeCause is the result's [RunResult.Cause].
	AttributeCause = "ClusterRunCause"
	// AttributeExitCode is the finished run's exit code.
	AttributeExitCode = "ClusterRunExitCode"
	// AttributePriority is the run's priority, from 1 to 5.
	AttributePriority = "ClusterRunPriority"
	// AttributeTasks is the number of tasks.
	AttributeTasks = "ClusterRunTasks"
	// AttributeRestarts is the number of restarted processes. While a run is open, it counts only
	// group restarts, and is updated at powers of two.
	AttributeRestarts = "ClusterRunRestarts"
	// AttributeNone is the value of verdict, hosts, cause and exit code until they are known.
	// Servers drop empty values, and a run would then not know which attributes to set.
	AttributeNone = "none"
)

// Attribute is the name of a search attribute, and its type as the temporal CLI spells it.
type Attribute struct{ Name, Type string }

// Attributes returns the search attributes of runs, in order of introduction. Per namespace, a
// database allows ten attributes of type Keyword and three of each other type, including
// user-defined ones. Therefore, numbers that are never compared in queries have the type Keyword.
func Attributes() []Attribute {
	return []Attribute{
		{AttributeOwner, "Keyword"},
		{AttributeVerdict, "Keyword"},
		{AttributeHost, "KeywordList"},
		{AttributeName, "Keyword"},
		{AttributeCause, "Keyword"},
		{AttributeExitCode, "Keyword"},
		{AttributePriority, "Keyword"},
		{AttributeTasks, "Int"},
		{AttributeRestarts, "Int"},
	}
}

// Names of the metrics that workflows record: counters and a duration. Package metrics describes
// how they are shown.
const (
	MetricRunsEnded = "clusterrun_runs_ended"
	MetricQueueWait = "clusterrun_queue_wait"
)

// Ending classifies ended runs, as the label of [MetricRunsEnded].
type Ending struct {
	Verdict Verdict
	// Cause is as [RunResult.Cause] returns it.
	Cause Cause
}

// Endings returns the usual endings: one for every cause of a failure, and one for each other
// verdict.
func Endings() []Ending {
	all := []Ending{
		{VerdictSucceeded, CauseCompleted}, {VerdictTimedOut, CauseTimeout}, {VerdictCancelled, CauseOperator},
		{VerdictSkipped, ""}, {VerdictPreempted, CausePreempted},
		{VerdictFailed, ""}, // no process caused it
	}
	for _, c := range Causes {
		if c.Cause != CauseCompleted && c.Cause != CauseCollateral && c.Cause != CausePreempted {
			all = append(all, Ending{VerdictFailed, c.Cause})
		}
	}
	return all
}

// Metadata of an encoded payload; see package codec.
const (
	// PayloadEncoding is the encoding.
	PayloadEncoding = "binary/encrypted"
	// PayloadKey is the field with the key's ID.
	PayloadKey = "encryption-key-id"
)

// MissingKeyError reports that a payload cannot be decoded without a key.
type MissingKeyError struct{ ID string }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("it is encoded with the key %q, which is missing or different here; name the file with that key in CLUSTERRUN_CODEC_KEYS", e.ID)
}

// MissingKey returns an error if a payload with the given metadata is still encoded.
func MissingKey(metadata map[string][]byte) *MissingKeyError {
	if string(metadata["encoding"]) != PayloadEncoding {
		return nil
	}
	return &MissingKeyError{ID: string(metadata[PayloadKey])}
}

// WorkflowTaskTimeout limits how long a worker may hold a workflow task of a run or barrier before
// the server gives the task to another worker. A server may lose a workflow task on a busy machine
// (the embedded server does not; see deployments/devserver/started.go), which stalls the run until
// the timeout, by default for 10 seconds. In a test with 20 processes waiting for each core, the
// longest workflow task took 0.4 s for a run with one task, and 0.5 s with a thousand. The server
// extends the timeout of a task that timed out more than three times. The closure queue has its own
// timeout.
const WorkflowTaskTimeout = 5 * time.Second

// RegisterAttributes returns the command that registers clusterrun's search attributes with a
// server that lacks them.
func RegisterAttributes() string {
	var b strings.Builder
	b.WriteString("temporal operator search-attribute create")
	for _, a := range Attributes() {
		fmt.Fprintf(&b, " --name %s --type %s", a.Name, a.Type)
	}
	return b.String()
}
