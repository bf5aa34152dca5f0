package devserver

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

const (
	// pollRPS raises the limit on reading the server's own task queues. By default, each shard's
	// queues are read 20 times per second. As there is only one shard, a single busy workflow would
	// wait 50 ms at every step.
	pollRPS = 5000

	// rateLimit replaces limits that protect a shared server from individual users.
	rateLimit = 10_000

	// ackInterval is the time between removals of finished tasks from the queues. A server that
	// starts repeats the tasks that were not removed. With the default, thousands of tasks would
	// delay the first run after a busy half minute.
	ackInterval = 3 * time.Second

	// queueWorkers is the number of workers for each of the server's task queues. They share
	// SQLite's one connection, so the default of 512 only costs memory and startup time.
	queueWorkers = 64
)

// tuning is Temporal's dynamic configuration. The keys are the library's own variables, so that a
// renamed key does not compile; the values must be Go's own int, bool and time.Duration. Settings
// for other servers are also in deployments/temporal/dynamicconfig.yaml; a test compares the two.
func tuning() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   pollRPS,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      pollRPS,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   pollRPS,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollRPS,

		// The maximum difference between the clocks of the server's hosts. No timer fires and no
		// activity is retried sooner than this. Here, there is only one host.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,

		// Notify a worker immediately that its activity is canceled, instead of in the answer to
		// the next heartbeat.
		dynamicconfig.WorkerCommandsEnabled.Key():             true,
		dynamicconfig.EnableCancelActivityWorkerCommand.Key(): true,

		// Partitions spread a busy task queue over hosts. On a single host, they only cause tasks
		// and pollers to miss each other.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Every run has its own task queues, and each costs a dozen goroutines until it is
		// unloaded: by default, five minutes after its last poll, or up to ten minutes if another
		// queue queries it. The idle time must be longer than any long poll; a worker's takes a
		// minute.
		dynamicconfig.MatchingMaxTaskQueueIdleTime.Key():       75 * time.Second,
		dynamicconfig.MatchingGetUserDataLongPollTimeout.Key(): 30 * time.Second,

		dynamicconfig.FrontendRPS.Key():                                         rateLimit,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  rateLimit,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        100,
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): rateLimit,
		dynamicconfig.MatchingRPS.Key():                                         rateLimit,
		dynamicconfig.HistoryRPS.Key():                                          rateLimit,
		dynamicconfig.WorkflowExecutionMaxInFlightUpdates.Key():                 1000,

		// A thousand tasks may end during one workflow task. If there are more events than this
		// limit, the workflow task fails and is repeated. With the default, that would happen for
		// every hundred events.
		dynamicconfig.MaximumBufferedEventsBatch.Key(): 2000,

		dynamicconfig.TransferProcessorUpdateAckInterval.Key():   ackInterval,
		dynamicconfig.TimerProcessorUpdateAckInterval.Key():      ackInterval,
		dynamicconfig.OutboundProcessorUpdateAckInterval.Key():   ackInterval,
		dynamicconfig.VisibilityProcessorUpdateAckInterval.Key(): ackInterval,

		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():      queueWorkers,
		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():   queueWorkers,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key(): queueWorkers,
		// Replication requires another cluster, and there is none.
		dynamicconfig.ReplicationProcessorSchedulerWorkerCount.Key():            1,
		dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount.Key(): 1,
		// Two is the SDK's minimum.
		dynamicconfig.WorkerScannerMaxConcurrentActivityTaskPollers.Key():     2,
		dynamicconfig.WorkerScannerMaxConcurrentWorkflowTaskPollers.Key():     2,
		dynamicconfig.WorkerParentCloseMaxConcurrentActivityTaskPollers.Key(): 2,
		dynamicconfig.WorkerParentCloseMaxConcurrentWorkflowTaskPollers.Key(): 2,

		// By default the cache could grow past what a laptop has.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 8192,
	}
}
