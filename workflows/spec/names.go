package spec

import "strings"

// Names on the wire. They are a contract with the temporal CLI, the Web UI and
// other versions of clusterrun; a golden test lists them.
const (
	// WorkflowType is the type of the workflow that is a run.
	WorkflowType = "ClusterRun"
	// BarrierWorkflowType is the type of the workflow that is one round of a
	// barrier; see [BarrierID].
	BarrierWorkflowType = "Barrier"
	// GroupWorkflowType is the type of the workflow that carries tasks of a large run on
	// one of its hosts; see [GroupID].
	GroupWorkflowType = "TaskGroup"
	// FleetWorkflowType is the type of the workflow that knows the hosts of a queue and
	// which runs wait for room on them; see [FleetID].
	FleetWorkflowType = "Fleet"
	// TaskQueue is the queue of the workflow workers that share work. The
	// queues of hosts are named after it; see [HostsQueue].
	TaskQueue = "clusterrun"

	QueryStatus = "status"
	// QueryBarrier asks a round who is there and who is missing.
	QueryBarrier = "barrier"

	// QueryHosts and QueryQueue ask a fleet for its hosts and for the runs that wait, and
	// QueryPlan where a run would go now.
	QueryHosts = "hosts"
	QueryQueue = "queue"
	QueryPlan  = "plan"

	// SignalArrive brings a round arrivals and withdrawals.
	SignalArrive = "arrive"
	// SignalFleet tells a fleet what a run wants, has or has no more, and a run what its
	// fleet has to say.
	SignalFleet = "fleet"

	// SignalEnded tells a run how tasks of one of its groups have ended.
	SignalEnded = "ended"

	// UpdateJoin adds a host to a fleet. UpdateCordon keeps new tasks from one,
	// and drains it where asked to; UpdateUncordon takes that back.
	UpdateJoin     = "join"
	UpdateCordon   = "cordon"
	UpdateUncordon = "uncordon"

	// ActivityHostLease holds the place of a host in its fleet, and ActivityFleetCheck looks
	// which of the runs of a fleet have ended without a word.
	ActivityHostLease  = "HostLease"
	ActivityFleetCheck = "FleetCheck"
	// ActivityBarrierCheck looks whether missing participants can still come.
	ActivityBarrierCheck = "BarrierCheck"
)

// Types of the errors a run fails with.
const (
	// ErrInvalidRunSpec: the spec was refused and nothing was started.
	ErrInvalidRunSpec = "InvalidRunSpec"
	// ErrPlacement: no host took the tasks.
	ErrPlacement = "PlacementError"
	// ErrSubprocess: a program reported an error.
	ErrSubprocess = "SubprocessError"
	// ErrSubprocessTimeout: the run's timeout passed, or tasks were still running
	// when the grace of a stop together was over.
	ErrSubprocessTimeout = "SubprocessTimeoutError"
	// ErrUnexpectedExit: a process ended badly without reporting an error.
	ErrUnexpectedExit = "UnexpectedSubprocessExitError"
	// ErrHostLost: a host died under its processes.
	ErrHostLost = "HostLostError"
)

// MemoStarted is the field of a run's memo that says when it was started, once it has
// gone on in another execution of its workflow.
const MemoStarted = "started"

// ErrRestart is the type of the failures of RunTask after which the task gets another process. Their
// message is why.
const ErrRestart = "Restart"

// Types of the errors that updates are refused with.
const (
	// ErrRefused: it cannot be met.
	ErrRefused = "Refused"
	// ErrInvalidRequest: it cannot be met as it is, whatever the state of the run.
	ErrInvalidRequest = "InvalidRequest"
	// ErrTryAgain: it can, in a moment, in another execution of the workflow.
	ErrTryAgain = "TryAgain"
)

// PrivateQueue returns the workflow queue of a run that brings its own hosts, by an ID that
// nobody guesses.
func PrivateQueue(id string) string { return TaskQueue + "/run/" + id }

// LocalQueue returns the private queue of a run with a single host worker, by an ID that nobody
// guesses. It is also the queue of the host, so that the server can answer a workflow task with
// the activities that it has scheduled.
func LocalQueue(id string) string { return PrivateQueue("local/" + id) }

// IsLocalQueue reports whether a workflow queue is that of a run with a single host worker.
func IsLocalQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, LocalQueue(""))
}

// AgentsQueue returns the workflow queue of a run whose hosts its agents bring, by an ID that
// nobody guesses. They are in a fleet of their own.
func AgentsQueue(id string) string { return TaskQueue + "/agents/" + id }

// IsAgentsQueue reports whether a workflow queue is that of a run whose hosts its agents bring:
// one that has left comes back as another.
func IsAgentsQueue(workflowQueue string) bool {
	return strings.HasPrefix(workflowQueue, AgentsQueue(""))
}

// IsPrivateQueue reports whether a workflow queue is that of a run with its own hosts, which
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

func hostQueue(workflowQueue, part string) string {
	if IsLocalQueue(workflowQueue) {
		return workflowQueue
	}
	return workflowQueue + part
}
