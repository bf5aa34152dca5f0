package spec

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Names on the wire. They are a contract with the temporal CLI, the Web UI and
// other versions of clusterrun; a golden test lists them.
const (
	// WorkflowType is the type of the workflow that is a run.
	WorkflowType = "ClusterRun"
	// BarrierWorkflowType is the type of the workflow that is one round of a
	// barrier; see [BarrierID].
	BarrierWorkflowType = "Barrier"
	// GroupWorkflowType is the type of the workflow that carries tasks of a large run on
	// one of its hosts; see [TaskGroupWorkflowID].
	GroupWorkflowType = "TaskGroup"
	// SharedWorkflowType is the type of the workflow that keeps a value for all hosts of a run
	// with many of them; see [SharedValueWorkflowID].
	SharedWorkflowType = "Shared"
	// FleetWorkflowType is the type of the workflow that knows the hosts of a queue and
	// which runs wait for room on them; see [FleetID].
	FleetWorkflowType = "Fleet"
	// TaskQueue is the queue of the workflow workers that share work. The
	// queues of hosts are named after it; see [HostsQueue].
	TaskQueue = "clusterrun"

	QueryStatus = "status"
	// QueryBarrier asks a round which tasks have arrived and which are missing.
	QueryBarrier = "barrier"

	// QueryHosts and QueryQueue ask a fleet for its hosts and for the runs that wait, and
	// QueryPlan where a run would go now.
	QueryHosts = "hosts"
	QueryQueue = "queue"
	QueryPlan  = "plan"
	// QuerySettings asks a fleet for the rules of its queue, and UpdateSettings changes them.
	QuerySettings  = "settings"
	UpdateSettings = "settings"
	// QueryHostHistory asks a fleet how runs have ended on a host.
	QueryHostHistory = "host-history"

	// SignalArrive carries arrivals and withdrawals to a round.
	SignalArrive = "arrive"
	// SignalFleet carries the requests and reports of a run to its fleet, and the fleet's
	// answers to the run.
	SignalFleet = "fleet"

	// SignalEnded reports the ends of tasks of a group to its run.
	SignalEnded = "ended"

	// UpdateJoin adds a host to a fleet. UpdateCordon keeps new tasks from a host, and drains
	// it if asked to; UpdateUncordon takes that back.
	UpdateJoin     = "join"
	UpdateCordon   = "cordon"
	UpdateUncordon = "uncordon"

	// ActivityHostLease holds the place of a host in its fleet, and ActivityFleetCheck finds
	// the runs of a fleet that have ended without a message.
	ActivityHostLease  = "HostLease"
	ActivityFleetCheck = "FleetCheck"
	// ActivityKnownAttributes returns the search attributes of runs that the namespace knows.
	ActivityKnownAttributes = "KnownAttributes"
	// ActivityRunEnd waits for the end of a run.
	ActivityRunEnd = "RunEnd"
	// ActivityBarrierCheck checks whether missing participants can still come.
	ActivityBarrierCheck = "BarrierCheck"
)

// Types of the errors a run fails with.
const (
	// ErrInvalidRunSpec means that the spec was refused and nothing was started.
	ErrInvalidRunSpec = "InvalidRunSpec"
	// ErrPlacement means that no host took the tasks.
	ErrPlacement = "PlacementError"
	// ErrSkipped means that the run has not begun, because of the end of an earlier run.
	ErrSkipped = "SkippedError"
	// ErrSubprocess means that a program reported an error.
	ErrSubprocess = "SubprocessError"
	// ErrSubprocessTimeout means that the run's timeout passed, or that tasks were still
	// running when the grace of a stop together was over.
	ErrSubprocessTimeout = "SubprocessTimeoutError"
	// ErrUnexpectedExit means that a process ended badly without reporting an error.
	ErrUnexpectedExit = "UnexpectedSubprocessExitError"
	// ErrHostLost means that a host died under its processes.
	ErrHostLost = "HostLostError"
)

// ErrTrials is the type of the error that a sweep fails with: some of its trials have failed.
const ErrTrials = "TrialsError"

// MemoStarted is the field of a run's memo that has its start time. It is set when the run
// continues in another execution of its workflow.
const MemoStarted = "started"

// ErrRemains is the type of the failures of RunTask while the task waits for the end of an earlier
// process, which SIGKILL does not end.
const ErrRemains = "Remains"

// ErrRestart is the type of the failures of RunTask after which the task gets another process.
// Their message is the reason, and their details are the number of restarts before.
const ErrRestart = "Restart"

// ErrNotify is the type of the error of a notification that was not taken.
const ErrNotify = "NotifyError"

// Types of the errors of refused updates.
const (
	// ErrRefused means that the run cannot meet the request in its present state.
	ErrRefused = "Refused"
	// ErrNotBegun means that the run cannot meet the request before it has started its tasks.
	ErrNotBegun = "NotBegun"
	// ErrInvalidRequest means that the request can be met in no state of the run.
	ErrInvalidRequest = "InvalidRequest"
	// ErrTryAgain means that the next execution of the workflow, in a moment, can meet it.
	ErrTryAgain = "TryAgain"
)

// PrivateQueue returns the workflow queue of a run that brings its own hosts. The ID must be
// hard to guess.
func PrivateQueue(id string) string { return TaskQueue + "/run/" + id }

// LocalQueue returns the private queue of a run with a single host worker. The ID must be hard
// to guess. It is also the queue of the host, so that the server can answer a workflow task
// with the activities that it has scheduled.
func LocalQueue(id string) string { return PrivateQueue("local/" + id) }

// IsLocalQueue reports whether a workflow queue belongs to a run with a single host worker.
func IsLocalQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, LocalQueue(""))
}

// AgentsQueue returns the workflow queue of a run whose hosts its agents bring. The ID must be
// hard to guess. The hosts are in a fleet of their own.
func AgentsQueue(id string) string { return TaskQueue + "/agents/" + id }

// IsAgentsQueue reports whether a workflow queue belongs to a run whose hosts its agents bring.
// An agent that has left comes back as another host.
func IsAgentsQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, AgentsQueue(""))
}

// IsPrivateQueue reports whether a workflow queue belongs to a run with its own hosts, which
// asks no fleet for them.
func IsPrivateQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, PrivateQueue(""))
}

// FleetID returns the workflow ID of the fleet of the hosts of a queue.
func FleetID(workflowQueue string) string { return workflowQueue + "/fleet" }

// HostsQueue returns the queue for Reserve of tasks that any host may
// take. workflowQueue is the queue of the run's workflow, so that runs on
// private queues stay on private hosts.
func HostsQueue(workflowQueue string) string { return hostQueue(workflowQueue, "/hosts") }

// HostQueue returns the queue for Reserve on the host of that name.
func HostQueue(workflowQueue, host string) string {
	return hostQueue(workflowQueue, "/host/"+host)
}

// InstanceQueue returns the queue for everything else on one host worker.
func InstanceQueue(workflowQueue, host, instance string) string {
	return hostQueue(workflowQueue, "/host/"+host+"/"+instance)
}

// HostOfQueue returns the name of the host of an [InstanceQueue], or an empty string.
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

// TaskActivityID returns the ID of the RunTask activity of a launch of a task. It is legible in
// the Web UI, and [TaskOfActivity] returns its task.
func TaskActivityID(task string, generation, launch int) string {
	return fmt.Sprintf("%s/%d.%d", task, generation, launch)
}

// RetryActivityID returns the ID of the nth further offer of the launch with that activity ID.
func RetryActivityID(id string, n int) string {
	if n == 0 {
		return id
	}
	return fmt.Sprintf("%s.%d", id, n)
}

// TaskOfActivity is the inverse of [TaskActivityID] and [RetryActivityID], without the launch. ok is false for the
// IDs of other activities.
func TaskOfActivity(id string) (task string, generation int, ok bool) {
	task, rest, _ := strings.Cut(id, "/")
	number, _, _ := strings.Cut(rest, ".")
	generation, err := strconv.Atoi(number)
	if err != nil {
		return "", 0, false
	}
	return task, generation, true
}

// TaskGroupWorkflowID returns the workflow ID of a group of a run: the nth group that an execution of the
// run's workflow starts on that host in a generation. It has the whole ID of the execution:
// executions that begin in the same minute have the same first digits.
func TaskGroupWorkflowID(workflowID, execution string, generation int, host string, n int) string {
	return fmt.Sprintf("%s%d/%s/%d", GroupIDPrefix(workflowID, execution), generation, url.PathEscape(host), n)
}

// GroupIDPrefix returns the common start of the IDs of all groups of one execution of a run.
func GroupIDPrefix(workflowID, execution string) string {
	return workflowID + "/group/" + execution + "/"
}

// IsGroupOf reports whether an ID is that of a group of any execution of a run.
func IsGroupOf(id, workflowID string) bool { return strings.HasPrefix(id, workflowID+"/group/") }

// GenerationOfGroup returns the generation of the group with that workflow ID, and -1 for
// the IDs of other workflows.
func GenerationOfGroup(id string) int {
	parts := strings.Split(id, "/")
	generation, err := strconv.Atoi(parts[max(0, len(parts)-3)])
	if err != nil {
		return -1
	}
	return generation
}

// HostOfGroup returns the host of the group with that workflow ID.
func HostOfGroup(id string) string {
	parts := strings.Split(id, "/")
	host, err := url.PathUnescape(parts[max(0, len(parts)-2)])
	if err != nil {
		return ""
	}
	return host
}

// SharedValueWorkflowID returns the workflow ID of the nth value that an execution of a run's workflow shares
// with its hosts.
func SharedValueWorkflowID(workflowID, execution string, n int) string {
	return fmt.Sprintf("%s/shared/%s/%d", workflowID, execution, n)
}

// NoticeID returns the ID of the nth notice of a run, which counts from 1. execution is the first
// execution of the run.
func NoticeID(workflowID, execution string, n int) string {
	return fmt.Sprintf("%s/notice/%s/%d", workflowID, execution, n)
}

// Names of the search attributes of runs. The starter, or the workflow after other starters, sets
// all that the namespace has registered, and the workflow updates these. The queue
// of a run is in the server's own attribute TaskQueue.
const (
	// AttributeOwner is the user who started the run.
	AttributeOwner = "ClusterRunOwner"
	// AttributeVerdict is the run's [Verdict], from its end on.
	AttributeVerdict = "ClusterRunVerdict"
	// AttributeHost lists the present or last hosts of the tasks of a run, as many as fit.
	AttributeHost = "ClusterRunHost"
	// AttributeName is the name in the spec.
	AttributeName = "ClusterRunName"
	// AttributeCause is the reason for the end of the run: see [RunResult.Cause].
	AttributeCause = "ClusterRunCause"
	// AttributeExitCode is the exit code of the run, from its end on.
	AttributeExitCode = "ClusterRunExitCode"
	// AttributePriority is the run's priority, from 1 to 5.
	AttributePriority = "ClusterRunPriority"
	// AttributeTasks is the number of tasks.
	AttributeTasks = "ClusterRunTasks"
	// AttributeRestarts is the number of processes that were started again. For an open run it
	// counts only the restarts of the group, and is set at powers of two.
	AttributeRestarts = "ClusterRunRestarts"
	// AttributeNone is the value of verdict, hosts, cause and exit code until there is one.
	// Servers drop empty values, and then a run would not know which attributes to set.
	AttributeNone = "none"
)

// Attribute is a search attribute: its name, and its type in the words of the temporal CLI.
type Attribute struct{ Name, Type string }

// Attributes returns the search attributes of runs, in the order in which versions added them.
// A database takes ten of the type Keyword and three of each other type in a namespace, and its
// users have their own. So numbers that no query compares have the type Keyword.
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

// The names of metrics that workflows record; a counter and a time. See package metrics for
// how they are shown.
const (
	MetricRunsEnded = "clusterrun_runs_ended"
	MetricQueueWait = "clusterrun_queue_wait"
	// MetricHostsSuspected counts hosts on which several runs have failed, but not on others.
	MetricHostsSuspected = "clusterrun_hosts_suspected"
)

// Ending is one of the ways in which a run may end: the labels of [MetricRunsEnded].
type Ending struct {
	Verdict Verdict
	// Cause is as [RunResult.Cause] returns it.
	Cause Cause
}

// Endings returns the usual endings: all causes of a failure, and one of each other verdict.
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

// The metadata of an encoded payload; see package codec.
const (
	// PayloadEncoding is the encoding.
	PayloadEncoding = "binary/encrypted"
	// PayloadKey is the field with the ID of the key.
	PayloadKey = "encryption-key-id"
)

// MissingKeyError reports that a payload cannot be read without a key.
type MissingKeyError struct{ ID string }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("it is encoded with the key %q, which is missing or different here; name the file with that key with --codec-keys or CLUSTERRUN_CODEC_KEYS", e.ID)
}

// MissingKey returns an error if a payload with that metadata is still encoded.
func MissingKey(metadata map[string][]byte) *MissingKeyError {
	if string(metadata["encoding"]) != PayloadEncoding {
		return nil
	}
	return &MissingKeyError{ID: string(metadata[PayloadKey])}
}

// WorkflowTaskTimeout is the time after which the server gives a workflow task of a run, or of
// a barrier, to another worker. A server may lose a workflow task on a busy machine (the
// embedded server does not; see deployments/devserver/started.go), and the run stands still
// until then: for 10 seconds by default. With 20 processes waiting for each core the longest
// workflow task of a run of one task took 0.4 s and of one of a thousand tasks 0.5 s; the
// server gives more time to a task that has timed out more than three times. The queue of
// closures has a timeout of its own.
const WorkflowTaskTimeout = 5 * time.Second
